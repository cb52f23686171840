"""A file that is written to while it is read: its whole lines, and how to know it again."""

import os
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from blake3 import blake3

from collectors.agent import safe_open
from collectors.source import CHUNK_BYTES, LINE_BYTES, Chunk, cut_long_lines, newlines

HEAD_BYTES = 1024  # by which a file is known again, whatever its name and inode
_NEAR_BYTES = 4096  # most lines are shorter


@dataclass(frozen=True)
class Place:
    """How far a file was read, and which one it is."""

    device: int
    inode: int
    offset: int = 0
    lines: int = 0  # before the offset
    head_bytes: int = 0  # so many bytes of its beginning
    head: str = ""  # have this digest
    changed_ns: int = 0  # when it had last been written to

    def is_in(self, other: "Place") -> bool:
        """Tell whether both are in one file."""
        return (self.device, self.inode) == (other.device, other.inode)


class OpenFile:
    """A file held open, so that it can be read to its end when it was rotated or removed."""

    def __init__(self, path: Path, pattern: str) -> None:
        """Open what a pattern has found at its beginning; `OSError` when it cannot be."""
        self.path = path
        self._file = safe_open.open_found(path, pattern)
        status = os.fstat(self._file.fileno())
        self.place = self._marked(Place(status.st_dev, status.st_ino))  # of the next chunk
        self._given: deque[Place] = deque()  # where the chunks ended that were given out

    def close(self) -> None:
        """Let go of it."""
        self._file.close()

    def seek(self, place: Place) -> bool:
        """Go on from a place, if it is one of this file's."""
        if not self._has(place):
            return False
        self.place = replace(place, device=self.place.device, inode=self.place.inode)
        self._given.clear()
        return True

    @property
    def unread_bytes(self) -> int:
        """How much there is behind the place."""
        return max(0, os.fstat(self._file.fileno()).st_size - self.place.offset)

    @property
    def changed_ns(self) -> int:
        """When it was last written to."""
        return os.fstat(self._file.fileno()).st_mtime_ns

    def chunks(
        self, *, at_most: int | None = None, until: int | None = None, is_finished: bool = False
    ) -> Iterator[Chunk]:
        """Yield whole lines from the place on, as many as there are now.

        Args:
            at_most: so many chunks.
            until: up to this offset, where a line ends.
            is_finished: nobody writes any more: the last line may lack its newline.
        """
        given = 0
        while given != at_most:
            size = CHUNK_BYTES if until is None else min(CHUNK_BYTES, until - self.place.offset)
            text, end = self._lines(size, is_finished=is_finished)
            if not text:
                return
            chunk = Chunk(self.place.lines + 1, text)
            lines = newlines(text) + (not text.endswith(b"\n"))
            self.place = replace(self.place, offset=end, lines=self.place.lines + lines)
            self._given.append(self.place)
            given += 1
            yield chunk

    def place_after(self, lines: int) -> Place | None:
        """Return the place behind so many lines of the file; None: no chunk ended there."""
        while self._given and self._given[0].lines < lines:
            self._given.popleft()
        if not self._given or self._given[0].lines != lines:
            return None
        return self._marked(self._given[0])

    def begins_like(self, place: Place) -> bool:
        """Tell whether it is, or is a copy of, the file that the place is in."""
        head = os.pread(self._file.fileno(), place.head_bytes, 0)
        return place.head_bytes > 0 and blake3(head).hexdigest() == place.head

    def _has(self, place: Place) -> bool:
        if os.fstat(self._file.fileno()).st_size < max(place.offset, place.head_bytes):
            return False
        return self.begins_like(place) if place.head_bytes else place.is_in(self.place)

    def _marked(self, place: Place) -> Place:
        """Return a place with what the file is known by again."""
        status = os.fstat(self._file.fileno())
        head = os.pread(self._file.fileno(), HEAD_BYTES, 0)
        return replace(
            place,
            head_bytes=len(head),
            head=blake3(head).hexdigest(),
            changed_ns=status.st_mtime_ns,
        )

    def _lines(self, size: int, *, is_finished: bool) -> tuple[bytes, int]:
        """Return whole lines, and where they end in the file; no text if there are none."""
        start = self.place.offset
        text = os.pread(self._file.fileno(), self._to_newline(start, size), start)
        end = text.rfind(b"\n") + 1
        if end:
            return cut_long_lines(text[:end]), start + end
        kept = text[:LINE_BYTES]
        start += len(text)
        while text and not end:  # a line longer than a chunk
            text = os.pread(self._file.fileno(), CHUNK_BYTES, start)
            end = text.find(b"\n") + 1
            start += end or len(text)
        if end:
            return kept + b"\n", start
        return (kept, start) if is_finished else (b"", start)

    def _to_newline(self, start: int, size: int) -> int:
        """Return up to where to read, so that as a rule nothing is read that would be cut off."""
        unseen = max(0, size - _NEAR_BYTES)
        near = os.pread(self._file.fileno(), size - unseen, start + unseen)
        newline = near.rfind(b"\n")
        return size if newline < 0 else unseen + newline + 1
