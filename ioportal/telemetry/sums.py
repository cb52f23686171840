"""Expressions of SQL statements over windows and snapshots."""

from collections.abc import Iterable

from psycopg import sql

from collectors.tables import METADATA_OPERATIONS, TIMES


def metadata_operations(alias: str) -> sql.Composed:
    """Return the sum of the metadata operations of a row; missing counters add nothing.

    Args:
        alias: the alias of the table in the statement.
    """
    return (
        sql.SQL("(")
        + sql.SQL(" + ").join(
            sql.SQL("coalesce({}, 0)").format(sql.Identifier(alias, name))
            for name in METADATA_OPERATIONS
        )
        + sql.SQL(")")
    )


def expressions(form: str, names: Iterable[str]) -> dict[str, sql.Composable]:
    """Return an expression for each column: `form` with the name of the column."""
    return {name: sql.SQL(form).format(sql.Identifier(name)) for name in names}


def timed_operations(alias: str) -> tuple[sql.Composed, sql.Composed]:
    """Return the metadata operations of a row with a known time, and their time.

    Args:
        alias: see `metadata_operations`.
    """
    columns = [
        (sql.Identifier(alias, time), sql.Identifier(alias, name))
        for time, name in TIMES.items()
        if name in METADATA_OPERATIONS
    ]
    plus = sql.SQL(" + ")
    return (
        plus.join(
            sql.SQL("CASE WHEN {} IS NULL THEN 0 ELSE {} END").format(*pair) for pair in columns
        ),
        plus.join(sql.SQL("coalesce({}, 0)").format(time) for time, _ in columns),
    )


def time_sums(form: str = "{}") -> dict[str, sql.Composable]:
    """Return an expression for the sum of each time of `TIMES`: `form` with the sum.

    It is null if there are no operations, or if the time of any of them is unknown.
    """
    return {
        time: sql.SQL(
            "CASE WHEN bool_and({0} IS NOT NULL OR coalesce({1}, 0) = 0) AND count({0}) > 0 THEN "
            + form.format("sum({0})")
            + " END"
        ).format(sql.Identifier(time), sql.Identifier(name))
        for time, name in TIMES.items()
    }
