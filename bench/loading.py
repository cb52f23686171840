"""Loading: windows with their segment and touched interval, beside bare COPY of the same rows."""

from __future__ import annotations

import io
from functools import partial
from typing import TYPE_CHECKING

from django.db import connection

from bench import inputs, portal
from bench.figures import Figure, Way, in_turn
from collectors.lustre import rpc_trace
from collectors.source import Source
from ioportal.ingest.formats import Command
from ioportal.ingest.formats.traces import RpcTraceLoader
from ioportal.ingest.loading import Origin, Text, load
from ioportal.ingest.models import Segment
from ioportal.jobs.models import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collectors.parsed import Parsed

LINES = 2_000_000
_NIDS = 20_000
_GOAL = 0.8


def measure(scale: float) -> Iterator[Figure]:
    """Time both ways to store the windows of one trace."""
    with inputs.rpctrace(int(LINES * scale), _NIDS) as trace:
        parts = list(rpc_trace.parse(Source.open(trace)))
    _load(parts)  # names become known
    copied = _as_copied()
    rows = sum(part.table.height for part in parts)
    timed = in_turn(
        f"{rows:,} rows",
        {
            "COPY": Way(partial(_copy, copied), prepare=portal.forget_traces),
            "load": Way(partial(_load, parts), prepare=portal.forget_traces),
        },
    )
    portal.forget_traces()
    yield Figure(
        "loading_vs_copy",
        "Loading parsed windows / bare COPY",
        timed.speed_up("load", "COPY"),
        "x",
        at_least=_GOAL,
    )
    for way, what in (("load", "Loading parsed windows"), ("COPY", "Bare COPY of the same rows")):
        yield Figure(f"loading_{way.lower()}", what, rows / timed.of(way), "rows/s")


class _ParsedLoader(RpcTraceLoader):
    """Loads what was parsed before."""

    def __init__(self, parsed: list[Parsed], segment: Segment, origin: Origin) -> None:
        super().__init__(Command(), segment, origin)
        self._parsed = parsed

    def parts(self, source: Source) -> Iterator[Parsed]:  # noqa: ARG002  (nothing is left to read)
        return iter(self._parsed)


def _load(parsed: list[Parsed]) -> None:
    text = Text(
        lambda: Source(io.BytesIO(), "parsed before"),
        Origin(server=Server.objects.get(name=portal.SERVER)),
    )
    load([text], Segment.Format.RPCTRACE, lambda: partial(_ParsedLoader, parsed))


def _as_copied() -> list[bytes]:
    """Return the stored windows as the database itself gives them out."""
    statement = "COPY (SELECT * FROM telemetry_rpcwindow) TO STDOUT (FORMAT binary)"
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        return _blocks(b"".join(copy))


def _blocks(data: bytes, size: int = 1 << 20) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


def _copy(blocks: list[bytes]) -> None:
    statement = "COPY telemetry_rpcwindow FROM STDIN (FORMAT binary)"
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        for block in blocks:
            copy.write(block)
