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


def metadata_increase(alias: str) -> sql.Composed:
    """Return the increase of a target's metadata operations since its previous read.

    A counter is printed from its first operation on. If it is missing later, its line was damaged:
    it then adds nothing, because without its earlier value its total would be added. Null: no
    previous read, or a counter fell, so that all have restarted from zero.

    Args:
        alias: see `metadata_operations`; the statement defines the window `earlier`, and should
            begin an hour before the increases that it needs.
    """
    counters = [sql.Identifier(alias, name) for name in METADATA_OPERATIONS]

    def each(form: str, separator: str) -> sql.Composed:
        return sql.SQL(separator).join(sql.SQL(form).format(counter) for counter in counters)

    return sql.SQL(
        "CASE WHEN lag(true) OVER earlier AND NOT coalesce({fell}, false) THEN {increase} END"
    ).format(
        fell=each("{0} < lag({0}) OVER earlier", " OR "),
        increase=each(
            "coalesce({0} - CASE WHEN count({0}) OVER earlier > 1 THEN lag({0}) OVER earlier "
            "ELSE 0 END, 0)",
            " + ",
        ),
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
