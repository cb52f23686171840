"""Keeps on disk what can be read only once, so that it can be read like a growing log.

The bytes go from a pipe, or from a command, to the journal without passing through this process:
wherever it is killed, what has left the pipe is in the journal.
"""

import os
import select
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from collectors.agent.health import Health
from collectors.agent.polling import commands
from collectors.parsed import SourceUnavailable

ROTATED_BYTES = 100_000_000
FULL_BYTES = 4 * ROTATED_BYTES
PAUSE_S = 1.0
_AT_ONCE_BYTES = 1 << 20
_WAIT_MS = 500


class Journal:
    """A file that is appended to; it is rotated when it is large and what was rotated is read.

    Args:
        path: of the journal; what was rotated has a 1 behind it.
        inode_read: tells which file the reader has reached.
    """

    def __init__(self, path: Path, inode_read: Callable[[], int | None]) -> None:
        self.path = path
        self._inode_read = inode_read
        self.path.touch(0o600)

    def has_room(self) -> bool:
        """Rotate if it is time; tell whether the reader is near enough for more."""
        status = self.path.stat()
        if status.st_size >= ROTATED_BYTES and self._inode_read() == status.st_ino:
            self.path.rename(self.path.with_name(f"{self.path.name}.1"))
            self.path.touch(0o600)
            return True
        return status.st_size < FULL_BYTES


class PipeFeeder:
    """Moves what comes through a named pipe; while the journal is full, writers wait."""

    def __init__(self, pipe: Path, journal: Journal, health: Health) -> None:
        self._pipe = pipe
        self._journal = journal
        self._health = health
        self._opened = -1

    def step(self) -> float:
        """Move what is there; return how many seconds to wait."""
        try:
            if not self._journal.has_room():
                self._health.trouble("journal", "full: writers to the pipe wait")
                return PAUSE_S
            self._move()
        except OSError as error:
            self._health.trouble("pipe", str(error))
            return PAUSE_S
        self._health.well("journal")
        self._health.well("pipe")
        return 0

    def _move(self) -> None:
        if self._opened < 0:
            self._opened = _opened_pipe(self._pipe)
        if not _has_something(self._opened):
            return
        journal = os.open(self._journal.path, os.O_WRONLY)  # splice refuses to append
        try:
            os.lseek(journal, 0, os.SEEK_END)
            os.splice(self._opened, journal, _AT_ONCE_BYTES)
        finally:
            os.close(journal)


class CommandFeeder:
    """Runs a command that prints what it then forgets, such as ``lctl dk``."""

    def __init__(
        self,
        command: Sequence[str],
        timeout_s: float,
        every_s: float,
        journal: Journal,
        health: Health,
    ) -> None:
        self._command = command
        self._timeout_s = timeout_s
        self._every_s = every_s
        self._journal = journal
        self._health = health

    def step(self) -> float:
        """Run it; return how many seconds to wait."""
        try:
            if not self._journal.has_room():
                self._health.trouble("journal", "full: the command is not run")
                return self._every_s
            with self._journal.path.open("ab") as journal:
                commands.run(self._command, self._timeout_s, journal)
        except (SourceUnavailable, OSError) as error:
            self._health.trouble("command", str(error))
        else:
            self._health.well("journal")
            self._health.well("command")
        return self._every_s


def _opened_pipe(path: Path) -> int:
    with suppress(FileExistsError):
        os.mkfifo(path, 0o600)
    # Open for writing too, so that it does not end when a writer goes.
    pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    if not stat.S_ISFIFO(os.fstat(pipe).st_mode):
        os.close(pipe)
        raise OSError(f"{path} is no named pipe")
    return pipe


def _has_something(pipe: int) -> bool:
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    return bool(poll.poll(_WAIT_MS))
