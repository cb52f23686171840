"""Without a Python object per row: frames into tables by COPY, and queries into frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from django.db import connection
from psycopg import sql

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from django.db import models

# PostgreSQL counts microseconds from here.
_EPOCH_US = 946_684_800_000_000
_SIGNATURE = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
_TRAILER = b"\xff\xff"
_WIRE = {  # PostgreSQL's type to its big-endian form
    "smallint": ">i2",
    "integer": ">i4",
    "bigint": ">i8",
    "timestamp with time zone": ">i8",
    "double precision": ">f8",
}
_ROWS_PER_WRITE = 100_000
_TIMESTAMP = "%Y-%m-%d %H:%M:%S%.f%#z"  # of PostgreSQL, in a session whose zone is UTC


def copy_frame(model: type[models.Model], frame: pl.DataFrame) -> None:
    """Append every row of `frame` to the table of `model`, in the current transaction.

    Args:
        model: its columns are numbers and timestamps.
        frame: any number of rows, with the model's columns but those that the database fills in;
            timestamps as polars datetimes in microseconds.
    """
    types = {
        field.column: str(field.db_type(connection))
        for field in model._meta.concrete_fields  # noqa: SLF001  (Django's documented meta API)
        if field.column in frame.columns
    }
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT binary)").format(
        sql.Identifier(model._meta.db_table),  # noqa: SLF001  (likewise)
        sql.SQL(", ").join(map(sql.Identifier, types)),
    )
    # Django names the database's errors for what runs through `execute` only.
    with (
        connection.wrap_database_errors,
        connection.cursor() as cursor,
        cursor.copy(statement) as copy,
    ):
        copy.write(_SIGNATURE)
        for part in frame.iter_slices(_ROWS_PER_WRITE):
            for rows in _by_nulls(part.select(*types)):
                copy.write(_encode(rows, types))
        copy.write(_TRAILER)


def copy_rows(
    model: type[models.Model], columns: Sequence[str], rows: Iterable[Sequence[Any]]
) -> None:
    """Append rows, texts among their values, to the table of `model`, in the transaction.

    Args:
        model: whatever columns it has.
        columns: those that the rows have, in order.
        rows: any number.
    """
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
        sql.Identifier(model._meta.db_table),  # noqa: SLF001  (Django's documented meta API)
        sql.SQL(", ").join(map(sql.Identifier, columns)),
    )
    with (
        connection.wrap_database_errors,
        connection.cursor() as cursor,
        cursor.copy(statement) as copy,
    ):
        for row in rows:
            copy.write_row(row)


def read_frame(
    query: sql.Composed, columns: Mapping[str, pl.DataType], values: Mapping[str, Any]
) -> pl.DataFrame:
    """Return what a query answers: its rows come as text, some thousand in one.

    Args:
        query: its columns are numbers, booleans and timestamps; any but the first may be null.
        columns: their names and types in the frame, in order; of one value of the first there are
            not too many rows for one text.
        values: of the query's parameters.
    """
    names = [sql.Identifier(name) for name in columns]
    statement = sql.SQL(
        "SELECT string_agg(concat({}), chr(10)) FROM ({}) q ({}) GROUP BY {}"
    ).format(sql.SQL(", ',', ").join(names), query, sql.SQL(", ").join(names), names[0])
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        answer = "\n".join(text for (text,) in cursor.fetchall()).encode()
    if not answer:
        return pl.DataFrame(schema=columns)
    texts = dict.fromkeys((name for name, kind in columns.items() if _is_text(kind)), pl.String())
    frame = pl.read_csv(answer, has_header=False, schema={**columns, **texts})
    return frame.with_columns(
        pl.col(name) == "t"
        if columns[name] == pl.Boolean
        else pl.col(name).str.to_datetime(_TIMESTAMP, time_unit="us", time_zone="UTC")
        for name in texts
    )


def _is_text(kind: pl.DataType) -> bool:
    return kind == pl.Boolean or kind.is_temporal()


def _by_nulls(frame: pl.DataFrame) -> list[pl.DataFrame]:
    """Split into frames whose columns are wholly null or free of nulls: one row layout each."""
    nullable = [name for name in frame.columns if frame[name].null_count()]
    if not nullable:
        return [frame]
    return frame.with_columns(pl.struct(pl.col(nullable).is_null()).alias("__nulls")).partition_by(
        "__nulls", include_key=False
    )


def _encode(frame: pl.DataFrame, types: dict[str, str]) -> memoryview:
    present = [name for name in types if not frame[name].null_count()]
    layout: list[tuple[str, str]] = [("fields", ">i2")]
    for name, kind in types.items():
        layout.append((f"{name} length", ">i4"))
        if name in present:
            layout.append((name, _WIRE[kind]))
    rows: np.ndarray[Any, Any] = np.empty(frame.height, dtype=layout)
    rows["fields"] = len(types)
    for name, kind in types.items():
        if name not in present:
            rows[f"{name} length"] = -1
            continue
        values = frame[name].to_physical().to_numpy()
        rows[name] = values - _EPOCH_US if kind == "timestamp with time zone" else values
        rows[f"{name} length"] = rows.dtype[name].itemsize
    return rows.data.cast("B")
