"""Untrusted rows of a batch, as bytes.

A reader returns a frame with exactly the columns of the table, or refuses the rows and names
column, row and reason. Nullable columns may be absent: agents of an earlier version lack new ones.
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
