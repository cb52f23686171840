"""Expressions of SQL statements over windows and snapshots."""

from collections.abc import Iterable

from psycopg import sql

from collectors.tables import METADATA_OPERATIONS


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
