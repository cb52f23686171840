"""Journals on disk for sources that can be read only once, read like growing logs.

Bytes go from a pipe or a command to the journal without passing through this process: after a kill
at any point, all bytes taken from the pipe are in the journal.
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
_SPLICE_BYTES = 1 << 20
_WAIT_MS = 500


class Journal:
    """An append-only file, rotated when it is large and the rotated file has been read.

    Args:
        path: of the journal; the rotated file has the suffix ``.1``.
        inode_read: returns the inode of the file that the reader has reached.
    """

    def __init__(self, path: Path, inode_read: Callable[[], int | None]) -> None:
        self.path = path
        self._inode_read = inode_read
        self.path.touch(0o600)

    def has_room(self) -> bool:
        """Rotate if necessary; return whether the journal may grow."""
        status = self.path.stat()
        if status.st_size >= ROTATED_BYTES and self._inode_read() == status.st_ino:
            self.path.rename(self.path.with_name(f"{self.path.name}.1"))
            self.path.touch(0o600)
            return True
        return status.st_size < FULL_BYTES


class PipeFeeder:
    """Moves data from a named pipe to the journal; while it is full, writers block."""

    def __init__(self, pipe: Path, journal: Journal, health: Health) -> None:
        self._pipe = pipe
        self._journal = journal
        self._health = health
        self._opened = -1

    def step(self) -> float:
        """Move available data; return the seconds to wait."""
        try:
            if not self._journal.has_room():
                self._health.failing("journal", "full: writers to the pipe are blocked")
                return PAUSE_S
            self._move()
        except OSError as error:
            self._health.failing("pipe", str(error))
            return PAUSE_S
        self._health.working("journal")
        self._health.working("pipe")
        return 0

    def _move(self) -> None:
        if self._opened < 0:
            self._opened = _opened_pipe(self._pipe)
        if not _has_data(self._opened):
            return
        journal = os.open(self._journal.path, os.O_WRONLY)  # splice refuses to append
        try:
            os.lseek(journal, 0, os.SEEK_END)
            os.splice(self._opened, journal, _SPLICE_BYTES)
        finally:
            os.close(journal)


class CommandFeeder:
    """Runs a command that prints each record only once, such as ``lctl dk``."""

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
        """Run the command; return the seconds to wait."""
        try:
            if not self._journal.has_room():
                self._health.failing("journal", "full: the command is not run")
                return self._every_s
            with self._journal.path.open("ab") as journal:
                commands.run(self._command, self._timeout_s, journal)
        except (SourceUnavailable, OSError) as error:
            self._health.failing("command", str(error))
        else:
            self._health.working("journal")
            self._health.working("command")
        return self._every_s


def _opened_pipe(path: Path) -> int:
    with suppress(FileExistsError):
        os.mkfifo(path, 0o600)
    # Also open for writing, to avoid end-of-file when a writer closes.
    pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    if not stat.S_ISFIFO(os.fstat(pipe).st_mode):
        os.close(pipe)
        raise OSError(f"{path} is not a named pipe")
    return pipe


def _has_data(pipe: int) -> bool:
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    return bool(poll.poll(_WAIT_MS))
