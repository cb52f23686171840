"""Reads a growing RPC trace: as fast as it comes, without what was dumped twice."""

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import asdict
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

import polars as pl

from collectors.agent import logs
from collectors.agent.batches import Coverage
from collectors.agent.files import Place
from collectors.agent.growing import GrowingLog
from collectors.agent.lines import Given, Kept, LineReader, Part
from collectors.agent.readers import Reading
from collectors.lustre import rpc_extents, rpc_trace
from collectors.lustre.rpc_repeats import SPAN_US, RepeatedRecords
from collectors.parsed import Parsed
from collectors.source import Lines
from collectors.tables import RPC_WINDOWS

PARTS_REMEMBERED = 100
_SPAN = timedelta(microseconds=SPAN_US)

_LOG = logs.of(__name__)


class TraceReader(LineReader):
    """Reads a growing RPC trace.

    Kept with the place are: up to when the trace is `covered`; and the `parts` whose records may come
    again, which are read once more, to be recognised, by a reader that does not know them.
    """

    def __init__(self, log: GrowingLog) -> None:
        super().__init__(RPC_WINDOWS.name, log, self._windows, chunks_at_once=None)
        self._seen: RepeatedRecords | None = None

    def read(self, place: dict[str, Any]) -> Generator[Reading]:
        """Yield what there is up to the end of the log."""
        self._seen = self._seen or self._remembered(place)
        try:
            yield from super().read(place)
        except BaseException:
            self._seen = None  # it has seen what is not kept
            raise

    def keep(self, kept: Kept, part: Part) -> tuple[Kept, list[Coverage]]:
        """Return what is to be kept with the place after a part, and what the part covers."""
        extents = rpc_extents.joined(pl.concat([parsed.table for parsed in part.parsed])).rows()
        if not extents:
            return kept, []
        covered = datetime.fromisoformat(kept["covered"]) if kept else None
        first, last = extents[0][0], extents[-1][1]
        earlier = [
            p for p in kept.get("parts", []) if datetime.fromisoformat(p["last"]) >= first - _SPAN
        ]
        this = {"begin": asdict(part.begin), "last": last.isoformat()}
        kept = {
            "covered": max(last, covered or last).isoformat(),
            "parts": [*earlier, this][-PARTS_REMEMBERED:],
        }
        return kept, [Coverage("", _begin(first, covered), last) for first, last in extents]

    def _windows(self, lines: Lines) -> Iterator[Parsed]:
        return rpc_trace.parse(lines, self._seen)

    def _remembered(self, place: dict[str, Any]) -> RepeatedRecords:
        """Read again what was read shortly before a place."""
        seen = RepeatedRecords()
        here = Place(**place["file"]) if place else None
        begins = [Place(**part["begin"]) for part in place.get("kept", {}).get("parts", [])]
        for _, in_file in groupby(begins, key=lambda begin: (begin.device, begin.inode)):
            begin = next(in_file)
            file = self._log.at(begin)
            if file is None:
                _LOG.warning("repeats_forgotten", offset=begin.offset)
                continue
            with closing(file):
                until = here.offset if here and begin.is_in(here) else None
                for _ in rpc_trace.parse(Given(file.chunks(until=until)), seen):
                    pass
        return seen


def _begin(first: datetime, covered: datetime | None) -> datetime:
    """Return since when the trace is observed: there is no gap after what was covered before."""
    return covered if covered and covered <= first <= covered + rpc_extents.SILENCE else first
