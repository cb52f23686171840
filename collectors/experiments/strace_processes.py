"""Processes of an strace log: their working directories and unfinished calls.

Source: docs/formats.md, "strace".
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import polars as pl

from collectors.experiments.strace_records import (
    COMPLETE,
    EXITED,
    FOLDER_CHANGES,
    PROCESS_STARTS,
    RESUMED,
    SUPERSEDED,
    UNFINISHED,
)

MAX_PROCESSES = 65_536  # known at the same time; the oldest are forgotten
_MAX_PARENTS = 16  # of a process whose start has not returned yet

CALLS = {
    "line": pl.Int64(),  # of the start of the call
    "time_us": pl.Int64(),
    "call": pl.String(),
    "base": pl.String(),  # folder of a relative path; null or "": unknown
    "path": pl.String(),
    "error": pl.String(),
    "duration_ns": pl.Float64(),
}
Call: TypeAlias = tuple[int, int | None, str, str | None, str | None, str, float | None]

_IS_SPECIAL = (pl.col("kind") != COMPLETE) | pl.col("call").is_in(
    sorted(FOLDER_CHANGES | PROCESS_STARTS)
)
NEEDS_FOLDER = (
    pl.col("base").is_null() & pl.col("path").is_not_null() & ~pl.col("path").str.starts_with("/")
)
_SHOWS_FOLDER = pl.col("in_cwd") & pl.col("base").is_not_null()
_FOLDERS = {"pid": pl.Int64(), "line": pl.Int64(), "folder": pl.String()}


class _Event(NamedTuple):
    """A record that depends on earlier lines or changes the meaning of later ones."""

    line: int
    kind: int
    pid: int
    time_us: int | None
    call: str
    base: str | None
    path: str | None
    error: str
    value: int | None
    duration_ns: float | None


@dataclass(slots=True)
class _Process:
    """The state of a process."""

    folder: str | None = None  # working directory
    is_first: bool = True  # of its pid, and its working directory was not in any line
    unfinished: _Event | None = None


@dataclass
class Processes:
    """The processes of one log, continued over its parts.

    A process inherits its working directory from the process that starts it. Its first lines may
    come before the result of that call.
    """

    _processes: dict[int, _Process] = field(default_factory=dict)
    _waiting: set[int] = field(default_factory=set)  # pids with an unfinished call
    _starting: set[int] = field(default_factory=set)  # in a call that starts a process
    _folders: list[tuple[int, int, str | None]] = field(default_factory=list)  # of this part

    @property
    def unfinished(self) -> list[int]:
        """Processes with an unfinished call."""
        return [pid for pid, process in self._processes.items() if process.unfinished]

    def calls(self, records: pl.DataFrame) -> pl.DataFrame:
        """Return the calls that ended in the next lines.

        Args:
            records: of consecutive lines, with the columns of `strace_records.RECORDS` and
                `time_us`.

        Returns:
            The calls, with the columns of `CALLS`.
        """
        is_special = records.select(special=_IS_SPECIAL)["special"]
        special, plain = records.filter(is_special), records.filter(~is_special)
        ended = [call for event in self._events(records, special) for call in self._ended(event)]
        return pl.concat(
            [self._with_folders(plain).select(*CALLS), pl.DataFrame(ended, CALLS, orient="row")]
        )

    def _with_folders(self, calls: pl.DataFrame) -> pl.DataFrame:
        """Return complete calls with the working directories of their processes."""
        needs_folder = calls.select(needed=NEEDS_FOLDER)["needed"]
        if not needs_folder.any():
            return calls
        folders = pl.DataFrame(self._folders, _FOLDERS, orient="row").sort(
            "line", maintain_order=True
        )
        relative = calls.filter(needs_folder).join_asof(
            folders, on="line", by="pid", check_sortedness=False
        )
        resolved = relative.with_columns(base="folder").select(calls.columns)
        return pl.concat([calls.filter(~needs_folder), resolved])

    def _events(self, records: pl.DataFrame, special: pl.DataFrame) -> Iterator[_Event]:
        """Yield the special records in order, with the processes of their time known."""
        first = records.group_by("pid").agg(pl.min("line")).sort("line")
        shown = records.filter(_SHOWS_FOLDER).group_by("pid").agg(pl.first("line", "base"))
        self._folders = [
            (pid, 0, self._processes[pid].folder)
            for pid in first["pid"].to_list()
            if pid in self._processes
        ]
        steps = [
            *((line, 0, pid, None) for pid, line in first.iter_rows()),
            *((line, 1, pid, base) for pid, line, base in shown.iter_rows()),
            *((event.line, 2, event.pid, event) for event in _events_of(special)),
        ]
        for line, _, pid, step in sorted(steps, key=lambda each: each[:2]):
            if isinstance(step, _Event):
                yield step
            elif step is None:
                self._process(pid, line)
            elif self._process(pid, line).is_first:
                self._move(pid, line, step)

    def _process(self, pid: int, line: int) -> _Process:
        """Return a process; register it at its first line."""
        known = self._processes.get(pid)
        if known:
            return known
        parents = self._starting or {0}
        folders = (
            {self._processes[parent].folder for parent in parents if parent in self._processes}
            if len(parents) <= _MAX_PARENTS
            else set()
        )
        return self._register(pid, line, folders.pop() if len(folders) == 1 else None)

    def _register(self, pid: int, line: int, folder: str | None) -> _Process:
        while len(self._processes) >= MAX_PROCESSES:
            forgotten = next(iter(self._processes))
            del self._processes[forgotten]
            self._stop_waiting(forgotten)
        self._processes[pid] = _Process(folder)
        self._folders.append((pid, line, folder))
        return self._processes[pid]

    def _stop_waiting(self, pid: int) -> None:
        self._waiting.discard(pid)
        self._starting.discard(pid)

    def _move(self, pid: int, line: int, folder: str | None) -> None:
        """Change the working directory of a process."""
        process = self._process(pid, line)
        process.folder, process.is_first = folder, False
        self._folders.append((pid, line, folder))

    def _ended(self, event: _Event) -> Iterator[Call]:
        """Update the process of an event; yield the call that ended with it."""
        process = self._process(event.pid, event.line)
        if event.kind == COMPLETE:
            yield self._end(event, event)
        elif event.kind == UNFINISHED:
            self._begin(process, event)
        elif event.kind == RESUMED:
            yield self._end(self._start_of(event), event)
        elif event.kind == SUPERSEDED:
            thread = self._processes.get(event.value or 0)
            process.unfinished = thread.unfinished if thread else None
        elif event.kind == EXITED:
            self._stop_waiting(event.pid)
            process.unfinished = None
            self._move(event.pid, event.line, None)

    def _begin(self, process: _Process, start: _Event) -> None:
        folder = start.base if start.base is not None else process.folder
        process.unfinished = start._replace(base=folder)
        self._waiting.add(start.pid)
        if start.call in PROCESS_STARTS:
            self._starting.add(start.pid)

    def _start_of(self, end: _Event) -> _Event:
        """Return the start of a resumed call; without one, its place is unknown."""
        pid = end.pid
        if not pid and pid not in self._waiting and len(self._waiting) == 1:
            [pid] = self._waiting  # strace writes no pid while it traces one process only
        process = self._process(pid, end.line)
        start, process.unfinished = process.unfinished, None
        self._stop_waiting(pid)
        if start and start.call == end.call:
            return start
        return end._replace(base="", path=None)

    def _end(self, start: _Event, end: _Event) -> Call:
        """Update the processes after a call; return it."""
        pid, call, path = start.pid, start.call, start.path
        base = start.base if start.base is not None else self._process(pid, end.line).folder
        if end.error == "" and call == "chdir" and path:
            self._move(pid, end.line, joined(base, path))
        elif end.error == "" and call == "fchdir":
            self._move(pid, end.line, base or None)
        elif end.error == "" and call == "getcwd" and end.path:
            self._move(pid, end.line, end.path)
        elif call in PROCESS_STARTS and end.value:
            self._inherit(pid, end.value, end.line)
        if call == "getcwd":
            path = end.path if end.error == "" else None
        return start.line, start.time_us, call, base, path, end.error, end.duration_ns

    def _inherit(self, pid: int, child: int, line: int) -> None:
        """Set the working directory of a started process, unless it has one already."""
        folder = self._process(pid, line).folder
        process = self._processes.get(child)
        if process is None:
            self._register(child, line, folder)
        elif process.folder is None:
            process.folder = folder
            self._folders.append((child, line, folder))


def _events_of(special: pl.DataFrame) -> Iterator[_Event]:
    return (_Event(*row) for row in special.select(*_Event._fields).iter_rows())


def joined(folder: str | None, path: str) -> str | None:
    """Return an absolute path; None if it is relative and its folder unknown."""
    if path.startswith("/"):
        return path
    return f"{folder.rstrip('/')}/{path}" if folder else None
