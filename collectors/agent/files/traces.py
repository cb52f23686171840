"""Reads a growing RPC trace: as fast as it comes, without what was dumped twice."""

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import asdict
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

import polars as pl

from collectors.agent import logs
from collectors.agent.delivery.batches import Coverage
from collectors.agent.files.folders import FolderReader
from collectors.agent.files.lines import Given, Kept, LineReader, Part
from collectors.agent.files.open_file import Place
from collectors.agent.files.tail import LogTail
from collectors.agent.reader import Reading
from collectors.lustre import rpc_extents, rpc_trace
from collectors.lustre.rpc_repeats import SPAN_US, RepeatedRecords
from collectors.parsed import Parsed
from collectors.source import Lines, Source
from collectors.tables import RPC_WINDOWS

PARTS_REMEMBERED = 100
_SPAN = timedelta(microseconds=SPAN_US)

_LOG = logs.of(__name__)


class TraceReader(LineReader):
    """Reads a growing RPC trace.

    Kept with the place are: up to when the trace is `covered`; and where the `recent` parts began
    whose records may come again: a reader that does not know them reads them once more.
    """

    def __init__(self, log: LogTail) -> None:
        super().__init__(RPC_WINDOWS, log, self._windows, chunks_at_once=None)
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
        return _kept(kept, part.parsed, asdict(part.begin))

    def _windows(self, lines: Lines) -> Iterator[Parsed]:
        return rpc_trace.parse(lines, self._seen)

    def _remembered(self, place: dict[str, Any]) -> RepeatedRecords:
        """Read again what was read shortly before a place."""
        seen = RepeatedRecords()
        here = Place(**place["file"]) if place else None
        begins = [Place(**begin) for begin, _ in place.get("kept", {}).get("recent", [])]
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


class TraceFolderReader(FolderReader):
    """Reads a folder of dumps of one server's trace; `recent` are paths."""

    def __init__(self, pattern: str, settled_s: float) -> None:
        super().__init__(RPC_WINDOWS, pattern, settled_s, self._windows)
        self._seen: RepeatedRecords | None = None

    def read(self, place: dict[str, Any]) -> Generator[Reading]:
        """Yield what the files say that were finished since."""
        self._seen = self._seen or self._remembered(place)
        try:
            yield from super().read(place)
        except BaseException:
            self._seen = None  # it has seen what is not kept
            raise

    def keep(
        self, place: dict[str, Any], path: Path, parsed: Parsed
    ) -> tuple[dict[str, Any], list[Coverage]]:
        """Return the place after a part, and what the part covers."""
        return _kept(place, [parsed], str(path))

    def _windows(self, source: Source) -> Iterator[Parsed]:
        return rpc_trace.parse(source, self._seen)

    def _remembered(self, place: dict[str, Any]) -> RepeatedRecords:
        """Read again the files that were read to their end shortly before a place."""
        seen = RepeatedRecords()
        finished = {file.rsplit(" ", 2)[0] for file in place.get("files", [])}
        for path in dict.fromkeys(path for path, _ in place.get("recent", [])):
            if path in finished and Path(path).exists():
                for _ in rpc_trace.parse(self.open(Path(path)), seen):
                    pass
        return seen


def _kept(kept: Kept, parsed: list[Parsed], begin: Any) -> tuple[Kept, list[Coverage]]:
    """Return what is kept after a part that began somewhere, and what it covers."""
    extents = rpc_extents.joined(pl.concat([part.table for part in parsed])).rows()
    if not extents:
        return kept, []
    first, last = extents[0][0], extents[-1][1]
    covered = datetime.fromisoformat(kept["covered"]) if "covered" in kept else first
    recent = [
        (begun, end)
        for begun, end in kept.get("recent", [])
        if datetime.fromisoformat(end) >= first - _SPAN
    ]
    following = {
        **kept,
        "covered": max(last, covered).isoformat(),
        "recent": [*recent, (begin, last.isoformat())][-PARTS_REMEMBERED:],
    }
    return following, [Coverage("", _begin(first, covered), last) for first, last in extents]


def _begin(first: datetime, covered: datetime) -> datetime:
    """Return since when the trace is observed: there is no gap after what was covered before."""
    return covered if covered <= first <= covered + rpc_extents.SILENCE else first
