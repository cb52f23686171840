"""A log that grows for ever: one file after the other, through rotation and truncation."""

import re
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from glob import escape, glob, has_magic
from pathlib import Path

from collectors.agent import logs, safe_open
from collectors.agent.files.open_file import OpenFile, Place

SETTLED_S = 5  # a file that was rotated away may still be written to for so long

_LOG = logs.of(__name__)

_ROTATED = re.compile(r"[.-][0-9][-0-9T:.]*Z?")  # what is put behind a rotated file's name
_COMPRESSED = (".gz", ".zst", ".bz2", ".xz")


class LogTail:
    """The file of a log that is to be read, of all it was rotated to.

    Args:
        pattern: the path of the log, whose rotated files have a number or a date behind its name
            (and are found while they are not compressed); or a pattern of names, such as those of
            daily files. The one that was last written to is the growing one.
        settled_s: see `SETTLED_S`.
    """

    def __init__(self, pattern: str, settled_s: float = SETTLED_S) -> None:
        self.pattern = pattern
        self._path = None if has_magic(pattern) else Path(pattern)
        self._settled_s = settled_s
        self.file: OpenFile | None = None
        self._skipped: set[Path] = set()

    def close(self) -> None:
        """Let go of the file."""
        if self.file:
            self.file.close()
        self.file = None

    def find(self, place: Place | None) -> OpenFile | None:
        """Return the file where to read on, at its place; None while there is none."""
        if self.file and place and self.file.seek(place):
            return self.file
        self.close()
        self.file = self._open(place)
        return self.file

    def successor(self, place: Place) -> Place | None:
        """Return where the next file begins, once the one of the place is settled."""
        assert self.file  # noqa: S101  (it was found)
        changed_ns = self.file.changed_ns
        if time.time_ns() - changed_ns < self._settled_s * 1e9:
            return None
        if self._path and _is(self._path, place):
            return None
        following = self._first(
            lambda file: (
                self._is_later(file, changed_ns)
                and not file.place.is_in(place)
                and not file.begins_like(place)  # a copy of it
                and file.unread_bytes > 0
            )
        )
        if following is None:
            return None
        following.close()
        return following.place

    def at(self, place: Place) -> OpenFile | None:
        """Open the file of a place, whatever its name is now; None if it is gone."""
        return self._first(
            lambda file: file.place.is_in(place) and file.seek(place)
        ) or self._first(lambda file: file.seek(place))

    def _open(self, place: Place | None) -> OpenFile | None:
        if place is None:
            return self._first(lambda file: self._path in {None, file.path})
        found = self.at(place)
        if found:
            return found
        following = self._first(lambda file: self._is_later(file, place.changed_ns))
        if following:
            _LOG.error("log_lost", log=self.pattern, read_bytes=place.offset)
        return following

    def _is_later(self, file: OpenFile, changed_ns: int) -> bool:
        return file.path == self._path or file.changed_ns > changed_ns

    def _first(self, fits: Callable[[OpenFile], bool]) -> OpenFile | None:
        """Return the first file that fits, in the order in which they were last written to."""
        for path in self._paths():
            try:
                file = OpenFile(path, self.pattern)
            except FileNotFoundError:  # rotated or removed just now
                continue
            except safe_open.Unsafe as error:
                if path == self._path:
                    raise
                self._skip(path, error)
                continue
            if fits(file):
                return file
            file.close()
        return None

    def _skip(self, path: Path, error: safe_open.Unsafe) -> None:
        """Log once that a file of the pattern is not read: the others are."""
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


def _is(path: Path, place: Place) -> bool:
    """Tell whether a path leads to the file of a place."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return False
    return (status.st_dev, status.st_ino) == (place.device, place.inode)
