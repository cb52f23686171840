"""The tail of a log: a sequence of files, through rotation and truncation."""

import re
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from glob import escape, glob, has_magic
from pathlib import Path

from collectors.agent import logs, safe_open
from collectors.agent.files.open_file import OpenFile, Position

SETTLED_S = 5  # a rotated file may be written to for this time

_LOG = logs.Log(__name__)

_ROTATED = re.compile(r"[.-][0-9][-0-9T:.]*Z?")  # suffix of a rotated file
_COMPRESSED = (".gz", ".zst", ".bz2", ".xz")


class LogTail:
    """The next file to read among a log and its rotated files.

    Args:
        pattern: the path of the log, whose rotated files have its name and a number or date (and
            are read unless compressed); or a pattern, for example of daily files. The file with the
            latest write is the growing one.
        settled_s: see `SETTLED_S`.
    """

    def __init__(self, pattern: str, settled_s: float = SETTLED_S) -> None:
        self.pattern = pattern
        self._path = None if has_magic(pattern) else Path(pattern)
        self._settled_s = settled_s
        self.file: OpenFile | None = None
        self._skipped: set[Path] = set()

    def close(self) -> None:
        """Close the file."""
        if self.file:
            self.file.close()
        self.file = None

    def find(self, position: Position | None) -> OpenFile | None:
        """Return the file to read next, at the position; None if there is none."""
        if self.file and position and self.file.seek(position):
            return self.file
        self.close()
        self.file = self._open(position)
        return self.file

    def successor(self, position: Position) -> Position | None:
        """Return the start of the next file, once the file of the position is settled."""
        assert self.file  # noqa: S101  (set by `find`)
        changed_ns = self.file.changed_ns
        if time.time_ns() - changed_ns < self._settled_s * 1e9:
            return None
        if self._path and _is_file_of(position, self._path):
            return None
        following = self._first(
            lambda file: (
                self._is_later(file, changed_ns)
                and not file.position.is_in_file_of(position)
                and not file.has_head_of(position)  # a copy
                and file.unread_bytes > 0
            )
        )
        if following is None:
            return None
        following.close()
        return following.position

    def open_at(self, position: Position) -> OpenFile | None:
        """Open the file of a position under its present name; None if it was removed."""
        return self._first(
            lambda file: file.position.is_in_file_of(position) and file.seek(position)
        ) or self._first(lambda file: file.seek(position))

    def _open(self, position: Position | None) -> OpenFile | None:
        if position is None:
            return self._first(lambda file: self._path in {None, file.path})
        current = self.open_at(position)
        if current:
            return current
        following = self._first(lambda file: self._is_later(file, position.changed_ns))
        if following:
            _LOG.error("log_lost", log=self.pattern, read_bytes=position.offset)
        return following

    def _is_later(self, file: OpenFile, changed_ns: int) -> bool:
        return file.path == self._path or file.changed_ns > changed_ns

    def _first(self, matches: Callable[[OpenFile], bool]) -> OpenFile | None:
        """Return the first match, in the order of the files' last writes."""
        for path in self._paths():
            try:
                file = OpenFile(path, self.pattern)
            except FileNotFoundError:  # rotated or removed meanwhile
                continue
            except safe_open.UnsafeFile as error:
                if path == self._path:
                    raise
                self._skip(path, error)
                continue
            if matches(file):
                return file
            file.close()
        return None

    def _skip(self, path: Path, error: safe_open.UnsafeFile) -> None:
        """Log once that a file of the pattern is skipped."""
        if path not in self._skipped:
            self._skipped.add(path)
            _LOG.warning("file_skipped", log=self.pattern, reason=str(error))

    def _paths(self) -> list[Path]:
        if self._path is None:
            paths = [Path(name) for name in glob(self.pattern)]  # noqa: PTH207  (it is absolute)
        else:
            name = self._path.name
            paths = [
                path
                for path in self._path.parent.glob(f"{escape(name)}*")
                if path == self._path or _ROTATED.fullmatch(path.name.removeprefix(name))
            ]
        written = {}
        for path in paths:
            with suppress(FileNotFoundError):
                status = path.lstat()
                if not stat.S_ISDIR(status.st_mode) and path.suffix not in _COMPRESSED:
                    written[path] = (path == self._path, status.st_mtime_ns)
        return sorted(written, key=written.__getitem__)


def _is_file_of(position: Position, path: Path) -> bool:
    try:
        status = path.stat()
    except FileNotFoundError:
        return False
    return (status.st_dev, status.st_ino) == (position.device, position.inode)
