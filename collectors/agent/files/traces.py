"""Reading of growing RPC traces, without records that were dumped twice."""

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import polars as pl

from collectors.agent import logs
from collectors.agent.delivery.batches import Coverage
from collectors.agent.files.folders import FolderReader
from collectors.agent.files.lines import ChunkedLines, Context, LineReader, Part
from collectors.agent.files.open_file import OpenFile, Position
from collectors.agent.files.tail import LogTail
from collectors.agent.reader import Reading
from collectors.lustre import rpc_extents, rpc_trace, rpc_windows
from collectors.lustre.rpc_repeats import RepeatedRecords
from collectors.lustre.rpc_seconds import SPAN_S, SlowSeconds
from collectors.parsed import Parsed
from collectors.source import Lines, Source
from collectors.tables import RPC_WINDOWS

PARTS_REMEMBERED = 100
PARTS_JOINED = 4  # more than a window of 100,000 RPC/s; a stop of the agent waits for them
_SPAN = timedelta(seconds=SPAN_S)  # longer than `rpc_repeats.SPAN_US`

_LOG = logs.Log(__name__)


@dataclass(frozen=True)
class _Memory:
    """What the next part of a trace needs of the records before it."""

    repeats: RepeatedRecords = field(default_factory=RepeatedRecords)
    seconds: SlowSeconds = field(default_factory=SlowSeconds)

    def parse(self, lines: Lines) -> Iterator[Parsed]:
        """Parse the next part, and remember it."""
        return rpc_trace.parse(lines, self.repeats, self.seconds)


class TraceReader(LineReader):
    """Reads a growing RPC trace.

    The context has the end of the trace's coverage (`covered`), and the start of `recent` parts
    whose records later parts depend on. After a restart these parts are read again, without
    shipping.

    The records of a window are read together, once its end has passed: a portal stores, attributes
    and keeps each window of a batch.
    """

    def __init__(self, log: LogTail) -> None:
        super().__init__(RPC_WINDOWS, log, self._windows, chunks_at_once=None)
        self._memory: _Memory | None = None

    def read(self, checkpoint: dict[str, Any]) -> Generator[Reading]:
        """Yield new data up to the end of the log."""
        self._memory = self._memory or self._restored(checkpoint)
        try:
            yield from super().read(checkpoint)
        except BaseException:
            self._memory = None  # it may contain records that were not committed
            raise

    def ready(self) -> Callable[[bytes], int]:
        """Return a function that returns the length of new lines up to the current window."""
        return partial(rpc_windows.before_window, start_s=rpc_windows.current_window_s(time.time()))

    def parts(self, file: OpenFile, *, is_finished: bool) -> Iterator[Part]:
        """Parse the file's new lines; join parts, and their rows of the same window."""
        parts = super().parts(file, is_finished=is_finished)
        while some := list(islice(parts, PARTS_JOINED)):
            yield _joined(some)

    def advance(self, context: Context, part: Part) -> tuple[Context, list[Coverage]]:
        """Return the context after a part, and the coverage of the part."""
        return _advance(context, part.parsed, asdict(part.begin))

    def _windows(self, lines: Lines) -> Iterator[Parsed]:
        assert self._memory  # noqa: S101  (set by `read`)
        return self._memory.parse(lines)

    def _restored(self, checkpoint: dict[str, Any]) -> _Memory:
        """Read the recent parts before a checkpoint again."""
        memory = _Memory()
        end = Position(**checkpoint["file"]) if checkpoint else None
        recent = checkpoint.get("context", {}).get("recent", [])
        begins = [Position(**begin) for begin, _ in recent]
        for _, in_file in groupby(begins, key=lambda begin: (begin.device, begin.inode)):
            begin = next(in_file)
            file = self._log.open_at(begin)
            if file is None:
                _LOG.warning("repeats_forgotten", offset=begin.offset)
                continue
            with closing(file):
                until = end.offset if end and begin.is_in_file_of(end) else None
                for _ in memory.parse(ChunkedLines(file.chunks(until=until))):
                    pass
        return memory


class TraceFolderReader(FolderReader):
    """Reads a folder of one server's trace dumps; `recent` parts are identified by path."""

    def __init__(self, pattern: str, settled_s: float) -> None:
        super().__init__(RPC_WINDOWS, pattern, settled_s, self._windows)
        self._memory: _Memory | None = None

    def read(self, checkpoint: dict[str, Any]) -> Generator[Reading]:
        """Yield the content of newly finished files."""
        self._memory = self._memory or self._restored(checkpoint)
        try:
            yield from super().read(checkpoint)
        except BaseException:
            self._memory = None  # it may contain records that were not committed
            raise

    def advance(
        self, checkpoint: dict[str, Any], path: Path, parsed: Parsed
    ) -> tuple[dict[str, Any], list[Coverage]]:
        """Return the checkpoint after a part, and the coverage of the part."""
        return _advance(checkpoint, [parsed], str(path))

    def _windows(self, source: Source) -> Iterator[Parsed]:
        assert self._memory  # noqa: S101  (set by `read`)
        return self._memory.parse(source)

    def _restored(self, checkpoint: dict[str, Any]) -> _Memory:
        """Read the recent finished files before a checkpoint again."""
        memory = _Memory()
        finished = {file.rsplit(" ", 2)[0] for file in checkpoint.get("files", [])}
        for path in dict.fromkeys(path for path, _ in checkpoint.get("recent", [])):
            if path in finished and Path(path).exists():
                for _ in memory.parse(self.open(Path(path))):
                    pass
        return memory


def _joined(parts: list[Part]) -> Part:
    whole = Parsed.joined(RPC_WINDOWS, (parsed for part in parts for parsed in part.parsed))
    windows = rpc_windows.merged(whole.table, "start", "nid", "job", "service", "opcode")
    parsed = replace(whole, table=windows.select(*RPC_WINDOWS.columns))
    return Part(parts[0].begin, parts[-1].end, [parsed])


def _advance(context: Context, parsed: list[Parsed], begin: Any) -> tuple[Context, list[Coverage]]:
    """Return the context after a part with the given start, and the coverage of the part."""
    extents = rpc_extents.joined(pl.concat([part.table for part in parsed])).rows()
    if not extents:
        return context, []
    first, last = extents[0][0], extents[-1][1]
    covered = datetime.fromisoformat(context["covered"]) if "covered" in context else first
    recent = [
        (begun, end)
        for begun, end in context.get("recent", [])
        if datetime.fromisoformat(end) >= first - _SPAN
    ]
    following = {
        **context,
        "covered": max(last, covered).isoformat(),
        "recent": [*recent, (begin, last.isoformat())][-PARTS_REMEMBERED:],
    }
    return following, [Coverage("", _begin(first, covered), last) for first, last in extents]


def _begin(first: datetime, covered: datetime) -> datetime:
    """Return the start of the coverage: the previous end if there is no gap."""
    return covered if covered <= first <= covered + rpc_extents.SILENCE else first
