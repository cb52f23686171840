"""Who is busy on the metadata servers: sums by principal, and by bin for those that are picked.

A principal is a pair (kind, who): of a job its key, of a process its source job id, of a host its
NID; of what has no principal the kind alone, with 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db import connection
from psycopg import sql

from ioportal.telemetry import levels
from ioportal.telemetry.models import IoWindow, Principal
from ioportal.telemetry.sums import metadata_operations

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime, timedelta

    from ioportal.telemetry.rollups import Piece

Who = tuple[int, int]  # kind, and which of that kind

_WHO = sql.SQL("""
CASE kind WHEN %(JOB)s THEN job_id WHEN %(PROCESS)s THEN source_job_id {} ELSE 0 END
""")
_WHO_RPC = _WHO.format(sql.SQL("WHEN %(HOST)s THEN nid_id"))
_WHO_IO = _WHO.format(sql.SQL(""))  # counters carry job ids alone

_RPC_PIECE = sql.SQL("""
SELECT server_id AS source, start, start AS "end", kind, {who} AS who,
    count AS amount, timed, service_us_sum, total_us_sum
FROM {table}
WHERE start >= {start} AND start < {end} AND server_id = ANY(%(sources)s)
""")
_IO_PIECE = sql.SQL("""
SELECT target_id AS source, start, "end", kind, {who} AS who, {operations} AS amount
FROM {table} w
WHERE {time} >= {start} AND {time} < {end} AND target_id = ANY(%(sources)s)
    AND basis <> %(TOTAL)s
""")

_SUMS = sql.SQL("""
SELECT kind, who, sum({amount})::float8, coalesce(sum({newest}), 0)::float8
FROM ({rows}) w
WHERE {inside}
GROUP BY kind, who
""")
# Of an interval that reaches beyond the range, the part inside: its rate is the same all along.
_PART_INSIDE = sql.SQL("""
amount * extract(epoch FROM least("end", %(until)s) - greatest(start, %(since)s))
    / extract(epoch FROM "end" - start)
""")
_INSIDE = sql.SQL('"end" > start AND "end" > %(since)s AND start < %(until)s')
_NEWEST_RPCS = sql.SQL("amount) FILTER (WHERE start >= %(newest_from)s")
# The last interval of each target that reaches its newest read, as a rate.
_NEWEST_OPERATIONS = sql.SQL("""
amount / extract(epoch FROM "end" - start)) FILTER (
    WHERE "end" >= (%(reached)s::timestamptz[])[
        array_position(%(sources)s::integer[], source)
    ]
""")

_LAYER = sql.SQL("""
LEFT JOIN unnest(%(kinds)s::smallint[], %(whos)s::bigint[], %(layers)s::smallint[])
    AS p (kind, who, layer) ON p.kind = w.kind AND p.who = w.who
""")
# (jobs that no layer shows are counted for those who may see only what ten or more of them do)
_UNSHOWN = sql.SQL("count(DISTINCT w.who) FILTER (WHERE p.layer IS NULL AND w.kind = %(JOB)s)")
_RPC_BINS = sql.SQL("""
SELECT source, date_bin(%(width)s, start, %(origin)s) AS bin, coalesce(p.layer, 0) AS layer,
    sum(amount)::float8, sum(timed)::float8, sum(service_us_sum)::float8,
    sum(total_us_sum)::float8, {unshown}
FROM ({rows}) w {layer}
GROUP BY 1, 2, 3
""")
# Intervals keep their bounds, to the nearest bin's edge: none is cut, and none is doubled.
_IO_BINS = sql.SQL("""
SELECT source, begins, greatest(ends, begins + %(width)s), layer, sum(amount)::float8, max(unshown)
FROM (
    SELECT source, date_bin(%(width)s, start + %(width)s / 2, %(origin)s) AS begins,
        date_bin(%(width)s, "end" + %(width)s / 2, %(origin)s) AS ends,
        coalesce(p.layer, 0) AS layer, sum(amount) AS amount, {unshown} AS unshown
    FROM ({rows}) w {layer}
    GROUP BY 1, 2, 3, 4
) binned
GROUP BY 1, 2, 3, 4
""")


class Amount(NamedTuple):
    """What a principal did in a range."""

    who: Who
    total: float
    newest: float  # RPCs of the newest time; of operations their rate in the newest intervals


@dataclass(frozen=True)
class Rows:
    """What to read: pieces of levels, of some servers or targets."""

    pieces: Sequence[Piece]
    sources: Sequence[int]


def rpc_amounts(rows: Rows, newest_from: datetime) -> list[Amount]:
    """Return the RPCs of each principal, and those of the newest time."""
    query = _SUMS.format(
        amount=sql.SQL("amount"), newest=_NEWEST_RPCS, inside=sql.SQL("true"), rows=_union(rows)
    )
    return _amounts(query, _values(rows) | {"newest_from": newest_from})


def operation_amounts(
    rows: Rows, since: datetime, until: datetime, reached: Sequence[datetime]
) -> list[Amount]:
    """Return each principal's operations in [since, until), and its newest rate.

    `reached` are the newest reads of the targets in `rows`.
    """
    query = _SUMS.format(
        amount=_PART_INSIDE, newest=_NEWEST_OPERATIONS, inside=_INSIDE, rows=_union(rows)
    )
    values = {"since": since, "until": until, "reached": list(reached)}
    return _amounts(query, _values(rows) | values)


def _amounts(query: sql.Composed, values: dict[str, Any]) -> list[Amount]:
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return [Amount((kind, who), total, newest) for kind, who, total, newest in cursor]


def bins(
    rows: Rows,
    layers: Sequence[Collection[Who]],
    width: timedelta,
    origin: datetime,
    *,
    count_unshown: bool,
) -> list[tuple[Any, ...]]:
    """Return sums by source, bin and layer.

    Args:
        rows: what to read.
        layers: whom each layer but the first shows: layer 0 is everybody else.
        width: of the bins.
        origin: where some bin begins.
        count_unshown: whether to count the jobs in layer 0.

    Returns:
        Of RPCs: source, begin, layer, RPCs, timed ones, sums of service and of total time, jobs in
        layer 0. Of operations: source, begin, end, layer, operations, jobs in layer 0.
    """
    of_rpcs = all(piece.level in levels.LOAD_LEVELS for piece in rows.pieces)
    form = _RPC_BINS if of_rpcs else _IO_BINS
    query = form.format(
        rows=_union(rows), layer=_LAYER, unshown=_UNSHOWN if count_unshown else sql.SQL("0")
    )
    shown = [(kind, who, n) for n, layer in enumerate(layers, start=1) for kind, who in layer]
    kinds, whos, numbers = zip(*shown, strict=True) if shown else ((), (), ())
    values = _values(rows) | {
        "kinds": list(kinds),
        "whos": list(whos),
        "layers": list(numbers),
        "width": width,
        "origin": origin,
    }
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found


def _union(rows: Rows) -> sql.Composed:
    return sql.SQL(" UNION ALL ").join(map(_piece, rows.pieces))


def _piece(piece: Piece) -> sql.Composed:
    span = {"start": sql.Literal(piece.start), "end": sql.Literal(piece.end)}
    table = sql.Identifier(piece.level.table)
    if piece.level in levels.LOAD_LEVELS:
        return _RPC_PIECE.format(table=table, who=_WHO_RPC, **span)
    is_rolled = piece.level is levels.IO_TEN_MINUTES
    return _IO_PIECE.format(
        table=table,
        who=_WHO_IO,
        operations=sql.Identifier("metadata_operations") if is_rolled else metadata_operations("w"),
        time=sql.Identifier(piece.level.time),
        **span,
    )


def _values(rows: Rows) -> dict[str, Any]:
    return {
        **{kind.name: kind.value for kind in (Principal.JOB, Principal.PROCESS, Principal.HOST)},
        "TOTAL": IoWindow.Basis.TOTAL.value,
        "sources": list(rows.sources),
    }
