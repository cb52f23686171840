"""Untrusted rows of a batch, as bytes.

A reader returns a frame with exactly the columns of the table, or refuses the rows and names
column, row and reason. Nullable columns may be absent: agents of an earlier version lack new ones.
"""

from __future__ import annotations

import json
import mmap
import struct
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from typing import TYPE_CHECKING, Any

import polars as pl

from ioportal.ingest.manifest import Refusal, TooLarge, UnknownType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from collectors.tables import Table

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


def claims(stream: mmap.mmap) -> Claims:
    """Return the claims of an Arrow stream, read before anything is decompressed.

    Reads only the metadata of its messages (flatbuffers) and the length prefix of each compressed
    buffer: a few bytes may claim gigabytes, which decompression would allocate.

    Source: Apache Arrow's format documents, "Encapsulated message format" and "Buffer compression";
    table fields are numbered as in Message.fbs and Schema.fbs.

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


def _messages(stream: mmap.mmap) -> Iterator[tuple[_Table, int, int]]:
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


def _record_batch(batch: _Table, stream: mmap.mmap, body: int, body_size: int) -> tuple[int, int]:
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


MAX_ROWS = 500_000
MAX_SIZE_BYTES = 256 << 20  # of the frame in memory
_LINES_PER_FRAME = 10_000
_REMEDY = "Send the columns of docs/formats.md, each of its type."
_BITS: dict[pl.DataType, int] = {pl.Int16(): 15, pl.Int32(): 31, pl.Int64(): 63}


def read(path: Path, content_type: str, table: Table) -> pl.DataFrame:
    """Return the rows of a file.

    Raises:
        Refusal: they do not match the table, or exceed a limit.
    """
    if content_type not in _READERS:
        raise UnknownType(
            f"Content type {content_type[:100]!r} is not supported.",
            remedy=f"Send rows as one of {', '.join(_READERS)}.",
        )
    if not path.stat().st_size:
        return table.empty()
    rows = _READERS[content_type](path, table)
    return rows.with_columns(pl.col(pl.String).str.replace_all("\x00", "\ufffd", literal=True))


def _arrow(path: Path, table: Table) -> pl.DataFrame:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as stream:
        try:
            claimed = claims(stream)
        except Malformed as error:
            raise _unreadable("an Arrow stream", error) from error
    _expect_columns(claimed.columns, table)
    _expect_bounded(claimed.rows, claimed.size_bytes)
    try:
        frame = pl.read_ipc_stream(path)
    except _FAULTS as error:
        raise _unreadable("an Arrow stream", error) from error
    return _typed(frame, table)


def _ndjson(path: Path, table: Table) -> pl.DataFrame:
    frames = [table.empty()]
    rows: list[dict[str, object]] = []
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            _expect_bounded(number, 0)
            rows.append(_object(line, number, table))
            if len(rows) == _LINES_PER_FRAME:
                frames.append(table.frame(rows))
                rows.clear()
    return pl.concat([*frames, table.frame(rows)])


_READERS: dict[str, Callable[[Path, Table], pl.DataFrame]] = {
    "application/vnd.apache.arrow.stream": _arrow,
    "application/x-ndjson": _ndjson,
}
# An error inside polars is a panic, which is not a subclass of Exception.
_FAULTS = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError)


def _expect_columns(names: tuple[str, ...], table: Table) -> None:
    """Refuse missing, additional or repeated columns."""
    missing = [name for name in table.columns if name not in {*names, *table.nullable}]
    extra = [name[:64] for name in names if name not in table.columns]
    if missing or extra or len(names) != len(set(names)):
        raise Refusal(
            f"The columns do not match {table.name}.",
            code="columns",
            missing=missing,
            extra=extra[:20],
            remedy=_REMEDY,
        )


def _expect_bounded(rows: int, size_bytes: int) -> None:
    if rows > MAX_ROWS or size_bytes > MAX_SIZE_BYTES:
        raise TooLarge(
            f"A batch has at most {MAX_ROWS:,} rows and {MAX_SIZE_BYTES:,} bytes, decompressed.",
            remedy="Send the rows as several batches.",
        )


def _typed(frame: pl.DataFrame, table: Table) -> pl.DataFrame:
    """Refuse columns of wrong types; return the columns in the order of the table."""
    for name, dtype_sent in frame.schema.items():
        dtype = table.columns[name]
        if dtype_sent != dtype:
            raise Refusal(
                f"Column {name} is {dtype_sent}, not {dtype}.",
                code="type",
                column=name,
                remedy=_REMEDY,
            )
    return pl.concat([table.empty(), frame], how="diagonal")


def _object(line: bytes, row: int, table: Table) -> dict[str, object]:
    """Read a line of NDJSON."""
    try:
        row_values = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Refusal(
            f"Line {row} is not JSON.", code="unreadable", row=row, reason=str(error)[:200]
        ) from error
    if not isinstance(row_values, dict):
        raise Refusal(
            f"Line {row} is not a JSON object.", code="unreadable", row=row, remedy=_REMEDY
        )
    _expect_columns(tuple(row_values), table)
    for name, dtype in table.columns.items():
        try:
            row_values[name] = _value(row_values.get(name), dtype)
        except (ValueError, OverflowError) as error:
            raise Refusal(
                f"Line {row}: {name} {error}.", code="type", column=name, row=row, remedy=_REMEDY
            ) from error
    return row_values


def _value(value: Any, dtype: pl.DataType) -> object:
    """Convert a JSON value to the type of a column; the error names the expected type."""
    if value is None:
        return None
    if dtype == pl.String:
        if isinstance(value, str) and value.isprintable():
            return value
        if isinstance(value, str):
            return value.encode(errors="replace").decode()  # replaces unpaired surrogates
        raise ValueError("is not a string")
    if isinstance(dtype, pl.Datetime):
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
        if moment is None or moment.tzinfo is None:
            raise ValueError("is not a time with a zone, like 2017-07-06T13:52:55Z")
        return moment.astimezone(UTC)
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise ValueError("is not a number")
    if dtype == pl.Float64:
        return float(value)
    if not isinstance(value, int) or abs(value) >= 1 << _BITS[dtype]:
        raise ValueError(f"is not an integer of type {dtype}")
    return value


def _unreadable(expected: str, error: BaseException) -> Refusal:
    return Refusal(f"The rows are not {expected}: {str(error)[:200]}.", code="unreadable")
