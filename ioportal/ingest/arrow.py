"""The size that an Arrow stream claims, read before anything is decompressed.

Reads only the metadata of its messages (flatbuffers) and the length prefix of each compressed
buffer: a few bytes may claim gigabytes, which decompression would allocate.

Source: Apache Arrow's format documents, "Encapsulated message format" and "Buffer compression";
table fields are numbered as in Message.fbs and Schema.fbs.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from mmap import mmap

_CONTINUATION = 0xFFFF_FFFF
_METADATA_BYTES = 1 << 20
_SCHEMA, _RECORD_BATCH = 1, 3  # kinds of messages; 2 is a dictionary
_FLAT = {2, 3, 5, 10, 20, 24}  # types: integers, floats, three string types, timestamps
_UNCOMPRESSED = -1


class Malformed(Exception):  # noqa: N818  (describes the stream)
    """Not an Arrow stream of flat columns."""


@dataclass(frozen=True)
class Claims:
    """Column names, and the size of the record batches in memory."""

    columns: tuple[str, ...]
    rows: int
    size_bytes: int


def claims(stream: mmap) -> Claims:
    """Return the claims of a stream.

    Raises:
        Malformed: it is truncated, or contains anything but record batches of flat columns.
    """
    columns: tuple[str, ...] | None = None
    rows = size = 0
    try:
        for header, body, body_size in _messages(stream):
            if header.kind == _SCHEMA and columns is None:
                columns = tuple(_flat_columns(header))
            elif header.kind == _RECORD_BATCH and columns is not None:
                batch_rows, batch_size = _record_batch(header, stream, body, body_size)
                rows += batch_rows
                size += batch_size
            else:
                raise Malformed("it contains messages other than a schema and record batches")
    except (struct.error, UnicodeDecodeError) as error:
        raise Malformed("it is truncated or corrupt") from error
    if columns is None:
        raise Malformed("it has no schema")
    return Claims(columns, rows, size)


class _Table:
    """A table of a flatbuffer: its fields by number."""

    def __init__(self, data: bytes, at: int, kind: int = 0) -> None:
        self._data = data
        self._at = at
        self.kind = kind
        self._fields = at - self._number("<i", at)
        self._size = self._number("<H", self._fields)

    def number(self, field: int, form: str) -> int:
        """Return a number; 0 if it is absent."""
        at = self._position(field)
        return self._number(form, at) if at else 0

    def has(self, field: int) -> bool:
        """Return whether a field is present."""
        return self._position(field) > 0

    def table(self, field: int, kind: int = 0) -> _Table:
        """Return a nested table."""
        return _Table(self._data, self._reference(self._position(field)), kind)

    def tables(self, field: int) -> list[_Table]:
        """Return a vector of tables."""
        count, first = self._vector(field)
        return [_Table(self._data, self._reference(first + 4 * n)) for n in range(count)]

    def pairs(self, field: int) -> list[tuple[int, int]]:
        """Return a vector of pairs of 64-bit numbers."""
        count, first = self._vector(field)
        return list(struct.iter_unpack("<qq", self._data[first : first + 16 * count]))

    def text(self, field: int) -> str:
        """Return a string."""
        size, first = self._vector(field)
        return self._data[first : first + size].decode()

    def _vector(self, field: int) -> tuple[int, int]:
        at = self._position(field)
        if not at:
            return 0, 0
        start = self._reference(at)
        count = self._number("<I", start)
        if count > len(self._data):
            raise Malformed("it is corrupt")
        return count, start + 4

    def _position(self, field: int) -> int:
        entry = 4 + 2 * field
        offset = self._number("<H", self._fields + entry) if entry < self._size else 0
        return self._at + offset if offset else 0

    def _reference(self, at: int) -> int:
        return at + self._number("<I", at)

    def _number(self, form: str, at: int) -> int:
        if at < 0:
            raise Malformed("it is corrupt")
        number: int = struct.unpack_from(form, self._data, at)[0]
        return number


def _messages(stream: mmap) -> Iterator[tuple[_Table, int, int]]:
    """Yield the header of each message, and the offset and size of its body."""
    at = 0
    while at < len(stream):
        marker, size = struct.unpack_from("<Ii", stream, at)
        if marker != _CONTINUATION or not 0 <= size <= _METADATA_BYTES:
            raise Malformed("it does not start like an Arrow stream")
        if size == 0:
            return
        data = stream[at + 8 : at + 8 + size]
        message = _Table(data, struct.unpack_from("<I", data)[0])
        body, body_size = at + 8 + size, message.number(3, "<q")
        at = body + body_size
        if body_size < 0 or at > len(stream):
            raise Malformed("it is truncated")
        yield message.table(2, kind=message.number(1, "<B")), body, body_size


def _flat_columns(schema: _Table) -> Iterator[str]:
    for field in schema.tables(1):
        name = field.text(0)
        if field.number(2, "<B") not in _FLAT or field.has(4) or field.tables(5):
            raise Malformed(f"column {name[:64]!r} does not contain numbers, strings or times")
        yield name


def _record_batch(batch: _Table, stream: mmap, body: int, body_size: int) -> tuple[int, int]:
    rows = batch.number(0, "<q")
    if rows < 0 or any(length != rows for length, _ in batch.pairs(1)):
        raise Malformed("its columns differ in length")
    is_compressed = batch.has(3)
    size = 0
    for offset, length in batch.pairs(2):
        if min(offset, length) < 0 or offset + length > body_size:
            raise Malformed("a buffer is outside its message")
        if is_compressed and length:
            (claimed,) = struct.unpack_from("<q", stream, body + offset)
            size += length if claimed == _UNCOMPRESSED else max(0, claimed)
        else:
            size += length
    return rows, size
