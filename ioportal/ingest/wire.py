"""The rows of a batch as bytes: nothing in them is trusted.

A reader is told the table that the rows must be of, and gives back a frame of exactly its columns,
or a refusal that names column, row and reason.
"""

from __future__ import annotations

import json
import mmap
from datetime import UTC, datetime
from math import isfinite
from typing import TYPE_CHECKING, Any

import polars as pl

from ioportal.ingest import arrow
from ioportal.ingest.refusals import Refusal, TooLarge, UnknownType

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from collectors.tables import Table

ROWS = 500_000  # in one batch
SIZE_BYTES = 256 << 20  # in memory, of one batch
_LINES_TOGETHER = 10_000
_REMEDY = "Send exactly the columns of docs/formats.md, each of its type."
_BITS: dict[pl.DataType, int] = {pl.Int16(): 15, pl.Int32(): 31, pl.Int64(): 63}


def read(path: Path, content_type: str, table: Table) -> pl.DataFrame:
    """Return the rows of a file.

    Raises:
        Refusal: they are not of the table, or too many.
    """
    if content_type not in _READERS:
        raise UnknownType(
            f"Rows of type {content_type[:100]!r} cannot be read.",
            remedy=f"Send them as one of {', '.join(_READERS)}.",
        )
    if not path.stat().st_size:
        return table.empty()
    rows = _READERS[content_type](path, table)
    return rows.with_columns(pl.col(pl.String).str.replace_all("\x00", "\ufffd", literal=True))


def _arrow(path: Path, table: Table) -> pl.DataFrame:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as stream:
        try:
            claims = arrow.claims(stream)
        except arrow.Malformed as error:
            raise _unreadable("an Arrow stream", error) from error
    _expect_columns(claims.columns, table)
    _expect_bounded(claims.rows, claims.size_bytes)
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
            if len(rows) == _LINES_TOGETHER:
                frames.append(table.frame(rows))
                rows.clear()
    return pl.concat([*frames, table.frame(rows)])


_READERS: dict[str, Callable[[Path, Table], pl.DataFrame]] = {
    "application/vnd.apache.arrow.stream": _arrow,
    "application/x-ndjson": _ndjson,
}
# A fault in polars' own code arrives as a panic, which is no plain Exception.
_FAULTS = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError)


def _expect_columns(names: tuple[str, ...], table: Table) -> None:
    """Refuse any other set of columns."""
    missing = [name for name in table.columns if name not in names]
    extra = [name[:64] for name in names if name not in table.columns]
    if missing or extra or len(names) != len(table.columns):
        raise Refusal(
            f"The columns are not those of {table.name}.",
            code="columns",
            missing=missing,
            extra=extra[:20],
            remedy=_REMEDY,
        )


def _expect_bounded(rows: int, size_bytes: int) -> None:
    if rows > ROWS or size_bytes > SIZE_BYTES:
        raise TooLarge(
            f"A batch has at most {ROWS:,} rows and {SIZE_BYTES:,} bytes, decompressed.",
            remedy="Send them as several batches.",
        )


def _typed(frame: pl.DataFrame, table: Table) -> pl.DataFrame:
    """Refuse columns of other types than the table's; return them in its order."""
    for name, dtype in table.columns.items():
        if frame.schema[name] != dtype:
            raise Refusal(
                f"Column {name} is {frame.schema[name]}, not {dtype}.",
                code="type",
                column=name,
                remedy=_REMEDY,
            )
    return frame.select(*table.columns)


def _object(line: bytes, row: int, table: Table) -> dict[str, object]:
    """Read a line of NDJSON."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Refusal(
            f"Line {row} is not JSON.", code="unreadable", row=row, reason=str(error)[:200]
        ) from error
    if not isinstance(found, dict):
        raise Refusal(f"Line {row} is not an object.", code="unreadable", row=row, remedy=_REMEDY)
    _expect_columns(tuple(found), table)
    for name, dtype in table.columns.items():
        try:
            found[name] = _value(found[name], dtype)
        except (ValueError, OverflowError) as error:
            raise Refusal(
                f"Line {row}: {name} {error}.", code="type", column=name, row=row, remedy=_REMEDY
            ) from error
    return found


def _value(told: Any, dtype: pl.DataType) -> object:
    """Return a value of JSON as one of a column; the error says what it is to be."""
    if told is None:
        return None
    if dtype == pl.String:
        if isinstance(told, str) and told.isprintable():
            return told
        if isinstance(told, str):
            return told.encode(errors="replace").decode()  # half a surrogate pair is no text
        raise ValueError("is not a text")
    if isinstance(dtype, pl.Datetime):
        moment = datetime.fromisoformat(told) if isinstance(told, str) else None
        if moment is None or moment.tzinfo is None:
            raise ValueError("is not a time with its zone, like 2017-07-06T13:52:55Z")
        return moment.astimezone(UTC)
    if isinstance(told, bool) or not isinstance(told, int | float) or not isfinite(told):
        raise ValueError("is not a number")
    if dtype == pl.Float64:
        return float(told)
    if not isinstance(told, int) or abs(told) >= 1 << _BITS[dtype]:
        raise ValueError(f"is not a whole number of {dtype}")
    return told


def _unreadable(what: str, error: BaseException) -> Refusal:
    return Refusal(f"The rows are not {what}: {str(error)[:200]}.", code="unreadable")
