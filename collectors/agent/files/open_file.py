"""An open file that may grow: its whole lines and its identity."""

import os
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from blake3 import blake3

from collectors.agent import safe_open
from collectors.source import CHUNK_BYTES, LINE_BYTES, Chunk, clean_lines, newlines, utf_16

HEAD_BYTES = 1024  # these identify a file independent of name and inode
_NEAR_BYTES = 4096  # longer than most lines


@dataclass(frozen=True)
class Position:
    """A position in a file, and the identity of the file."""

    device: int
    inode: int
    offset: int = 0
    lines: int = 0  # before the offset
    head_bytes: int = 0  # length of the file's head
    head: str = ""  # digest of the head
    changed_ns: int = 0  # last write to the file

    def is_in_file_of(self, other: "Position") -> bool:
        """Whether both positions are in one file."""
        return (self.device, self.inode) == (other.device, other.inode)


class OpenFile:
    """A file that stays open, so that it can be read to its end after a rotation or removal."""

    def __init__(self, path: Path, pattern: str) -> None:
        """Open a file that matches a pattern, at its start; `OSError` if that fails."""
        self.path = path
        self._file = safe_open.open_matching(path, pattern)
        status = os.fstat(self._file.fileno())
        self.position = self._identified(Position(status.st_dev, status.st_ino))  # of next chunk
        self._chunk_ends: deque[Position] = deque()  # of the chunks yielded

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def seek(self, position: Position) -> bool:
        """Go to a position; return False if it is in another file."""
        if not self._has(position):
            return False
        self.position = replace(position, device=self.position.device, inode=self.position.inode)
        self._chunk_ends.clear()
        return True

    @property
    def unread_bytes(self) -> int:
        """Bytes after the position."""
        return max(0, os.fstat(self._file.fileno()).st_size - self.position.offset)

    @property
    def changed_ns(self) -> int:
        """Time of the last write."""
        return os.fstat(self._file.fileno()).st_mtime_ns

    def chunks(
        self,
        *,
        at_most: int | None = None,
        until: int | None = None,
        is_finished: bool = False,
        ready: Callable[[bytes], int] = len,
    ) -> Iterator[Chunk]:
        """Yield the whole lines that exist after the position.

        Args:
            at_most: maximum number of chunks.
            until: offset of a line's end at which to stop.
            is_finished: the file is complete: its last line may lack a newline, and all are ready.
            ready: returns the length of the first lines of a text that can be read already.

        Raises:
            OSError: the file is UTF-16, whose lines cannot be followed byte by byte.
        """
        if utf_16(os.pread(self._file.fileno(), 2, 0)):
            raise OSError(f"{self.path}: is UTF-16: have it written as UTF-8")
        count = 0
        while count != at_most:
            position = self.position
            size = CHUNK_BYTES if until is None else min(CHUNK_BYTES, until - position.offset)
            text, end = self._lines(size, ready, is_finished=is_finished)
            if not text:
                return
            lines = newlines(text) + (not text.endswith(b"\n"))
            self.position = replace(position, offset=end, lines=position.lines + lines)
            self._chunk_ends.append(self.position)
            count += 1
            yield Chunk(position.lines + 1, text)

    def position_after(self, lines: int) -> Position | None:
        """Return the position after `lines` lines of the file; None if no chunk ended there."""
        while self._chunk_ends and self._chunk_ends[0].lines < lines:
            self._chunk_ends.popleft()
        if not self._chunk_ends or self._chunk_ends[0].lines != lines:
            return None
        return self._identified(self._chunk_ends[0])

    def has_head_of(self, position: Position) -> bool:
        """Whether the file is, or is a copy of, the file of a position."""
        head = os.pread(self._file.fileno(), position.head_bytes, 0)
        return position.head_bytes > 0 and blake3(head).hexdigest() == position.head

    def _has(self, position: Position) -> bool:
        if os.fstat(self._file.fileno()).st_size < max(position.offset, position.head_bytes):
            return False
        if position.head_bytes:
            return self.has_head_of(position)
        return position.is_in_file_of(self.position)

    def _identified(self, position: Position) -> Position:
        """Return a position with the current identity of the file."""
        status = os.fstat(self._file.fileno())
        head = os.pread(self._file.fileno(), HEAD_BYTES, 0)
        return replace(
            position,
            head_bytes=len(head),
            head=blake3(head).hexdigest(),
            changed_ns=status.st_mtime_ns,
        )

    def _lines(
        self, size: int, ready: Callable[[bytes], int], *, is_finished: bool
    ) -> tuple[bytes, int]:
        """Return whole lines, and the offset of their end; b"" if there are none."""
        start = self.position.offset
        text = os.pread(self._file.fileno(), self._to_newline(start, size), start)
        end = text.rfind(b"\n") + 1
        if end:
            end = end if is_finished else ready(text[:end])
            return clean_lines(text[:end]), start + end
        line = text[:LINE_BYTES]
        start += len(text)
        while text and not end:  # a line longer than a chunk
            text = os.pread(self._file.fileno(), CHUNK_BYTES, start)
            end = text.find(b"\n") + 1
            start += end or len(text)
        if end:
            return line + b"\n", start
        return (line, start) if is_finished else (b"", start)

    def _to_newline(self, start: int, size: int) -> int:
        """Return the size up to the last newline within `size`, to avoid reading bytes twice."""
        near_start = max(0, size - _NEAR_BYTES)
        near = os.pread(self._file.fileno(), size - near_start, start + near_start)
        newline = near.rfind(b"\n")
        return size if newline < 0 else near_start + newline + 1
