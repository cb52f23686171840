"""Operations on metadata targets and their mean times, by kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from django.db import connection
from psycopg import sql

from collectors.tables import TIMES
from ioportal.telemetry import levels, piecewise
from ioportal.telemetry.models import IoWindow

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from ioportal.telemetry.piecewise import Piece

_PIECE = sql.SQL("""
SELECT {columns} FROM {table}
WHERE {time} >= {start} AND {time} < {end} AND target_id = ANY(%(targets)s) AND basis <> %(TOTAL)s
""")
_COLUMNS = sql.SQL(", ").join(map(sql.Identifier, (*TIMES, *TIMES.values())))
_SUMS = sql.SQL(", ").join(
    sql.SQL("sum({0}), sum({1}), sum({0}) FILTER (WHERE {1} IS NOT NULL)").format(
        sql.Identifier(name), sql.Identifier(time)
    )
    for time, name in TIMES.items()
)


class OperationTime(NamedTuple):
    """The operations of one kind."""

    kind: str
    operations: int
    mean_us: float | None  # None: the server does not count times


def by_kind(targets: Collection[int], start: datetime, end: datetime) -> list[OperationTime]:
    """Return the operations in intervals that start in [start, end), most frequent first."""
    pieces = piecewise.coarsest_pieces(levels.IO_LEVELS, start, end)
    rows = sql.SQL(" UNION ALL ").join(map(_query, pieces))
    values: dict[str, Any] = {"targets": list(targets), "TOTAL": IoWindow.Basis.TOTAL.value}
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("SELECT {} FROM ({}) w").format(_SUMS, rows), values)
        sums = cursor.fetchone()
    kinds = (
        OperationTime(name, int(operations), float(us / timed) if timed else None)
        for name, operations, us, timed in zip(
            TIMES.values(), sums[::3], sums[1::3], sums[2::3], strict=True
        )
        if operations
    )
    return sorted(kinds, key=lambda kind: -kind.operations)


def _query(piece: Piece) -> sql.Composed:
    return _PIECE.format(
        columns=_COLUMNS,
        table=sql.Identifier(piece.level.table),
        time=sql.Identifier(piece.level.time),
        start=sql.Literal(piece.start),
        end=sql.Literal(piece.end),
    )
