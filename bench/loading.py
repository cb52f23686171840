"""Loading: windows with their segment and dirty interval, compared with COPY of the same rows.

From memory, and as batches over HTTP to the real web server.
"""

from __future__ import annotations

import io
import json
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

import httpx
import polars as pl
from django.db import connection

from bench import inputs, portal
from bench.figures import Figure, Way, in_turn
from collectors.lustre import rpc_trace
from collectors.lustre.rpc_trace import RPC_TRACE
from collectors.source import Source
from collectors.tables import RPC_WINDOWS
from ioportal.ingest.loaders.traces import RpcTraceLoader
from ioportal.ingest.loading import InputFile, LoadOptions, Origin, load
from ioportal.site.models import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collectors.parsed import Parsed
    from ioportal.ingest.models import Segment

LINES = 2_000_000
_NIDS = 20_000
_GOAL = 0.8
_ENDPOINT_GOAL = 0.5
_BATCH_ROWS = 200_000  # as agents send at most
_ANSWERS_WITHIN_S = 60


def measure(scale: float) -> Iterator[Figure]:
    """Time both ways to store the windows of one trace."""
    with inputs.rpctrace(int(LINES * scale), _NIDS) as trace:
        parts = list(rpc_trace.parse(Source.open(trace)))
    _load(parts)  # creates names
    copied = _as_copied()
    portal.clear_traces()
    rows = sum(part.table.height for part in parts)
    ways = {
        "COPY": Way(partial(_copy, copied), prepare=portal.clear_traces),
        "load": Way(partial(_load, parts), prepare=portal.clear_traces),
    }
    with portal.served() as web:
        deliver = _Deliveries(f"{web.address}/api/v1/ingest/batches", parts)
        deliver()  # creates names there, too
        ways["endpoint"] = Way(deliver, prepare=portal.clear_traces)
        timed = in_turn(f"{rows:,} rows", ways)
    portal.clear_traces()
    ratios = {
        "load": ("Loading parsed windows / bare COPY", _GOAL),
        "endpoint": ("Batches to the ingest endpoint / bare COPY", _ENDPOINT_GOAL),
    }
    for way, (what, at_least) in ratios.items():
        yield Figure(f"{way}_vs_copy", what, timed.speed_up(way, "COPY"), "x", at_least=at_least)
    speeds = {
        "load": "Loading parsed windows",
        "endpoint": f"Batches of {_BATCH_ROWS:,} rows to the ingest endpoint",
        "COPY": "Bare COPY of the same rows",
    }
    for way, what in speeds.items():
        yield Figure(f"loading_{way.lower()}", what, rows / timed.median_s(way), "rows/s")


class _Deliveries:
    """Delivers windows in batches like an agent; each call uses a new stream."""

    def __init__(self, url: str, parts: list[Parsed]) -> None:
        self._url = url
        self._token = portal.token()
        windows = pl.concat(part.table for part in parts)
        self._batches = list(windows.iter_slices(_BATCH_ROWS))
        self._encoded = list(map(_encoded, self._batches))

    def __call__(self) -> None:
        stream = uuid4()
        for number, rows in enumerate(self._batches, start=1):
            records = int(rows["count"].sum())
            batch = {
                "stream": str(stream),
                "sequence": number,
                "table": RPC_WINDOWS.name,
                "account": {
                    "lines": records, "accepted": records, "rejected": 0, "irrelevant": 0
                },
            }  # fmt: skip
            answer = httpx.post(
                self._url,
                headers={
                    "Authorization": f"Token {self._token}",
                    "Idempotency-Key": f"{stream}/{number}",
                },
                files={
                    "batch": ("batch", json.dumps(batch), "application/json"),
                    "rows": (
                        "rows", self._encoded[number - 1], "application/vnd.apache.arrow.stream"
                    ),
                },
                timeout=_ANSWERS_WITHIN_S,
            )  # fmt: skip
            answer.raise_for_status()


def _encoded(rows: pl.DataFrame) -> bytes:
    stream = io.BytesIO()
    rows.write_ipc_stream(stream, compression="zstd")
    return stream.getvalue()


class _ParsedLoader(RpcTraceLoader):
    """Loads windows that were parsed before."""

    def __init__(self, parsed: list[Parsed], segment: Segment, origin: Origin) -> None:
        super().__init__(LoadOptions(), segment, origin)
        self._parsed = parsed

    def parts(self, source: Source) -> Iterator[Parsed]:  # noqa: ARG002  (already parsed)
        return iter(self._parsed)


def _load(parsed: list[Parsed]) -> None:
    text = InputFile(
        lambda: Source(io.BytesIO(), "parsed before"),
        Origin(server=Server.objects.get(name=portal.SERVER)),
    )
    load([text], RPC_TRACE, lambda: partial(_ParsedLoader, parsed))


def _as_copied() -> list[bytes]:
    """Return the stored windows as exported by the database."""
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
