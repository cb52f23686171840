"""Sums that statements over windows and snapshots have in common."""

from psycopg import sql

from collectors.tables import METADATA_OPERATIONS


def metadata_operations(alias: str) -> sql.Composed:
    """Return the sum of the metadata operations of a row; what is not counted there adds nothing.

    Args:
        alias: that of the table in the statement.
    """
    return (
        sql.SQL("(")
        + sql.SQL(" + ").join(
            sql.SQL("coalesce({}, 0)").format(sql.Identifier(alias, name))
            for name in METADATA_OPERATIONS
        )
        + sql.SQL(")")
    )
