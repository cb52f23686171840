"""Copy frames into tables and query results into frames, without a Python object per row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, LiteralString

import numpy as np
import polars as pl
from django.core.exceptions import EmptyResultSet
from django.db import connection
from psycopg import ClientCursor, sql

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from django.db import models
    from django.db.models import QuerySet

# The epoch of PostgreSQL, 2000-01-01, in Unix microseconds.
_EPOCH_US = 946_684_800_000_000
_SIGNATURE = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
_TRAILER = b"\xff\xff"
_WIRE = {  # PostgreSQL's type to its big-endian form
    "smallint": ">i2",
    "integer": ">i4",
    "bigint": ">i8",
    "timestamp with time zone": ">i8",
    "double precision": ">f8",
    "boolean": "?",
}
_ROWS_PER_WRITE = 100_000
# Fewer rows, and rows with nulls, are faster as CSV.
_BINARY_ROWS = 500
_BEGIN_TO_REPLACE = sql.SQL("CREATE TEMP TABLE {new} AS SELECT {columns} FROM {table} WITH NO DATA")
_REPLACE = sql.SQL("""
INSERT INTO {table} ({columns}) SELECT {columns} FROM {new}
ON CONFLICT ({key}) DO UPDATE SET ({columns}) = ROW ({values});
DROP TABLE {new}
""")
# Expressions for values in eight bytes, including null.
_NULL = -(2**63)
_SENT: dict[pl.DataType, LiteralString] = {
    pl.Float64(): "float8send(coalesce({}::float8, 'NaN'))",
    pl.Int64(): "int8send(coalesce({}::int8, -9223372036854775808))",
    pl.Boolean(): "int8send(coalesce({}::int4::int8, -9223372036854775808))",
}
_SENT_TIME: LiteralString = "timestamptz_send(coalesce({}, '-infinity'))"


def copy_frame(model: type[models.Model], frame: pl.DataFrame) -> None:
    """Append every row of `frame` to the table of `model`, in the current transaction.

    Args:
        model: its columns are numbers, booleans, timestamps and texts.
        frame: rows with the model's columns, except those with database defaults; timestamps are
            polars datetimes in microseconds; texts have no NUL characters.
    """
    _copy(model, frame, into=_table(model))


def replace_frame(model: type[models.Model], frame: pl.DataFrame, key: str) -> None:
    """Insert or replace the rows of `frame` by key, in the current transaction.

    Args:
        model: see `copy_frame`.
        frame: see `copy_frame`; keys are unique.
        key: the column of the model's primary key.
    """
    parts = {
        "table": _table(model),
        "new": sql.Identifier("replacing"),
        "key": sql.Identifier(key),
        "columns": sql.SQL(", ").join(map(sql.Identifier, frame.columns)),
        "values": sql.SQL(", ").join(sql.Identifier("excluded", name) for name in frame.columns),
    }
    with connection.cursor() as cursor:
        cursor.execute(_BEGIN_TO_REPLACE.format(**parts))
        _copy(model, frame, into=parts["new"])
        cursor.execute(_REPLACE.format(**parts))


def _table(model: type[models.Model]) -> sql.Identifier:
    return sql.Identifier(model._meta.db_table)  # noqa: SLF001  (Django's documented meta API)


def _copy(model: type[models.Model], frame: pl.DataFrame, into: sql.Composable) -> None:
    nulls = dict(zip(frame.columns, frame.null_count().row(0), strict=True))
    types = {
        field.column: str(field.db_type(connection))
        for field in model._meta.concrete_fields  # noqa: SLF001  (Django's documented meta API)
        # Columns of nulls are omitted, so that large frames rarely have nulls to encode.
        if field.column in nulls and nulls[field.column] < frame.height
    }
    if not types:
        return
    is_binary = (
        frame.height >= _BINARY_ROWS
        and _WIRE.keys() >= set(types.values())
        and not any(map(nulls.get, types))
    )
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT {})").format(
        into,
        sql.SQL(", ").join(map(sql.Identifier, types)),
        sql.SQL("binary" if is_binary else "csv"),
    )
    parts = frame.select(*types).iter_slices(_ROWS_PER_WRITE)
    # Django wraps errors only in `execute`.
    with (
        connection.wrap_database_errors,
        connection.cursor() as cursor,
        cursor.copy(statement) as copy,
    ):
        for content in _binary(parts, types) if is_binary else _csv(parts):
            copy.write(content)


def copy_rows(
    model: type[models.Model], columns: Sequence[str], rows: Iterable[Sequence[Any]]
) -> None:
    """Append rows with values of any type to the table of `model`, in the current transaction.

    Args:
        model: the model of the table.
        columns: the columns of the rows, in order.
        rows: the rows.
    """
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
        _table(model), sql.SQL(", ").join(map(sql.Identifier, columns))
    )
    with (
        connection.wrap_database_errors,
        connection.cursor() as cursor,
        cursor.copy(statement) as copy,
    ):
        for row in rows:
            copy.write_row(row)


def read_frame(
    query: sql.Composable, columns: Mapping[str, pl.DataType], values: Mapping[str, Any]
) -> pl.DataFrame:
    """Return the result of a query as a frame; each response joins the bytes of many rows.

    Args:
        query: its columns are numbers, booleans and timestamps; null and NaN become null.
        columns: names and types in order: `Int64`, `Float64`, `Boolean` or a datetime. Rows with
            one value of the first column form one response, so they must be few.
        values: the parameters of the query.
    """
    names = [sql.Identifier(name) for name in columns]
    sent = (
        sql.SQL(_SENT.get(kind, _SENT_TIME)).format(name)
        for name, kind in zip(names, columns.values(), strict=True)
    )
    statement = sql.SQL("SELECT string_agg({}, '') FROM ({}) q ({}) GROUP BY {}").format(
        sql.SQL(" || ").join(sent), query, sql.SQL(", ").join(names), names[0]
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        response = b"".join(rows for (rows,) in cursor.fetchall())
    fields = np.frombuffer(response, ">i8").reshape(-1, len(columns))
    received = zip(columns.items(), fields.T, strict=True)
    frame = pl.DataFrame({name: _native(kind, field) for (name, kind), field in received})
    # One step for all columns: frames are mostly small.
    return frame.select(_decoded(name, kind) for name, kind in columns.items())


def read_rows(rows: QuerySet[Any, Any], columns: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Return the rows of a QuerySet, with texts, as a frame; they cross the wire as CSV.

    Args:
        rows: values in the order of `columns`.
        columns: names and types: `String`, `Int64`, `Float64`, `Boolean` or a datetime.
    """
    try:
        query, values = rows.query.sql_with_params()
    except EmptyResultSet:  # a filter that nothing can match
        return pl.DataFrame(schema=columns)
    with connection.wrap_database_errors, connection.cursor() as cursor:
        select = ClientCursor(cursor.connection).mogrify(query, values)  # COPY has no parameters
        statement = sql.SQL("COPY ({}) TO STDOUT (FORMAT csv)").format(sql.SQL(select))
        with cursor.copy(statement) as copy:
            content = b"".join(copy)
    if not content:
        return pl.DataFrame(schema=columns)
    parsed = {
        name: pl.col(name) == "t" if kind == pl.Boolean else _time(name)
        for name, kind in columns.items()
        if kind == pl.Boolean or kind.is_temporal()
    }
    schema = {**columns, **dict.fromkeys(parsed, pl.String())}
    return pl.read_csv(content, has_header=False, schema=schema).with_columns(**parsed)


def _time(name: str) -> pl.Expr:
    text = pl.col(name)
    return text.str.to_datetime("%Y-%m-%d %H:%M:%S%.f%#z", time_unit="us", time_zone="UTC")


def _native(kind: pl.DataType, field: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return field.view(">f8").astype("=f8") if kind == pl.Float64 else field.astype("=i8")


def _decoded(name: str, kind: pl.DataType) -> pl.Expr:
    if kind == pl.Float64:
        return pl.col(name).fill_nan(None)
    numbers = pl.col(name).replace(_NULL, None)
    if kind == pl.Boolean:
        return numbers == 1
    return (numbers + _EPOCH_US).cast(kind) if kind.is_temporal() else numbers


def _csv(parts: Iterable[pl.DataFrame]) -> Iterator[str]:
    for part in parts:
        # An empty text is quoted, null is not.
        yield part.write_csv(include_header=False, quote_style="non_numeric")


def _binary(parts: Iterable[pl.DataFrame], types: dict[str, str]) -> Iterator[bytes | memoryview]:
    yield _SIGNATURE
    for part in parts:
        yield _encode(part, types)
    yield _TRAILER


def _encode(frame: pl.DataFrame, types: dict[str, str]) -> memoryview:
    layout: list[tuple[str, str]] = [("fields", ">i2")]
    for name, kind in types.items():
        layout += [(f"{name} length", ">i4"), (name, _WIRE[kind])]
    rows: np.ndarray[Any, Any] = np.empty(frame.height, dtype=layout)
    rows["fields"] = len(types)
    for name, kind in types.items():
        values = frame[name].to_physical().to_numpy()
        rows[name] = values - _EPOCH_US if kind == "timestamp with time zone" else values
        rows[f"{name} length"] = rows.dtype[name].itemsize
    return rows.data.cast("B")
