"""Who is busy on the metadata servers: sums by principal, and by bin for those that are picked.

Who is on top is told by the coarsest sums; only of those that are picked are finer rows read. All
others together are what the totals hold besides.

A principal is a pair (kind, who): of a job its key, of a process its source job id, of a host its
NID; of what has no principal the kind alone, with 0.
"""

from __future__ import annotations

from collections import defaultdict
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
SELECT server_id AS source, start, start AS "end", {of}
    count AS amount, timed, service_us_sum, total_us_sum
FROM {table}
WHERE start >= {start} AND start < {end} AND server_id = ANY(%(sources)s) AND {whose}
""")
_IO_PIECE = sql.SQL("""
SELECT target_id AS source, start, "end", {of} {operations} AS amount
FROM {table} w
WHERE {time} >= {start} AND {time} < {end} AND target_id = ANY(%(sources)s)
    AND basis <> %(TOTAL)s AND {whose}
""")
_EVERYBODY = sql.SQL("true")
_NO_COLUMNS = sql.SQL("")
_IO = (*levels.IO_LEVELS, levels.IO_TOTALS)
_OF_WHO = sql.SQL("kind, {who} AS who,")

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
_NEWEST_RPCS = sql.SQL(
    "amount) FILTER (WHERE start >= %(newest_from)s AND start < %(newest_until)s"
)
# The interval of each target that reaches its newest read, as a rate.
_NEWEST_OPERATIONS = sql.SQL("""
amount / extract(epoch FROM "end" - start)) FILTER (
    WHERE (%(reached)s::timestamptz[])[array_position(%(sources)s::integer[], source)] > start
    AND (%(reached)s::timestamptz[])[array_position(%(sources)s::integer[], source)] <= "end"
""")

_LAYER = sql.SQL("""
LEFT JOIN unnest(%(kinds)s::smallint[], %(whos)s::bigint[], %(layers)s::smallint[])
    AS p (kind, who, layer) ON p.kind = w.kind AND p.who = w.who
""")
# Rows that may be of those that are picked, by the indexes that there are; `_LAYER` has the last
# word. ("Not 0" is said for the sake of indexes which hold no zeros.)
_WHOSE = {
    Principal.JOB: sql.SQL("job_id <> 0 AND job_id = ANY({})"),
    Principal.PROCESS: sql.SQL("source_job_id <> 0 AND source_job_id = ANY({})"),
    Principal.HOST: sql.SQL("nid_id <> 0 AND nid_id = ANY({})"),
}
_OF_NOBODY = sql.SQL("kind = {}")
_RPC_BIN = sql.SQL("""
source, date_bin(%(width)s, start, %(origin)s), date_bin(%(width)s, start, %(origin)s) + %(width)s
""")
# Intervals keep their bounds, to the nearest bin's edge: none is cut, and none is doubled.
_IO_BIN = sql.SQL("""
source, date_bin(%(width)s, start + %(width)s / 2, %(origin)s), greatest(
    date_bin(%(width)s, "end" + %(width)s / 2, %(origin)s),
    date_bin(%(width)s, start + %(width)s / 2, %(origin)s) + %(width)s
)
""")
_RPC_SUMS = sql.SQL("""
sum(amount)::float8, sum(timed)::float8, sum(service_us_sum)::float8, sum(total_us_sum)::float8
""")
_IO_SUMS = sql.SQL("sum(amount)::float8, 0::float8, 0::float8, 0::float8")
_SHOWN = sql.SQL("""
SELECT {bin}, p.layer, {sums} FROM ({rows}) w {layer} WHERE p.layer IS NOT NULL GROUP BY 1, 2, 3, 4
""")
_ALL = sql.SQL("SELECT {bin}, {sums} FROM ({rows}) w GROUP BY 1, 2, 3")
# (jobs that no layer shows are counted for those who may see only what ten or more of them do)
_UNSHOWN = sql.SQL("""
SELECT {bin}, count(DISTINCT w.who) FROM ({rows}) w {layer}
WHERE p.layer IS NULL AND w.kind = %(JOB)s GROUP BY 1, 2, 3
""")
_REACHING = sql.SQL("""
SELECT min(start) FROM ({rows}) w
WHERE "end" >= (%(reached)s::timestamptz[])[array_position(%(sources)s::integer[], source)]
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


class Bin(NamedTuple):
    """What one layer did on a server or target in a bin; of operations no times are known."""

    source: int
    start: datetime
    end: datetime
    layer: int  # 0: all that no layer shows
    amount: float
    timed: float
    service_us: float
    total_us: float
    unshown_jobs: int  # of layer 0, if they were to be counted


def rpc_amounts(rows: Rows, newest_from: datetime, newest_until: datetime) -> list[Amount]:
    """Return the RPCs of each principal, and those of the newest time."""
    query = _SUMS.format(
        amount=sql.SQL("amount"), newest=_NEWEST_RPCS, inside=sql.SQL("true"), rows=_union(rows)
    )
    newest = {"newest_from": newest_from, "newest_until": newest_until}
    return _amounts(query, _values(rows) | newest)


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


def reaching_from(rows: Rows, reached: Sequence[datetime]) -> datetime | None:
    """Return when the first of the intervals begins that reach the newest reads of the targets."""
    query = _REACHING.format(rows=_union(rows, of=_NO_COLUMNS))
    with connection.cursor() as cursor:
        cursor.execute(query, _values(rows) | {"reached": list(reached)})
        found: datetime | None = cursor.fetchone()[0]
    return found


def bins(
    rows: Rows,
    totals: Rows,
    layers: Sequence[Collection[Who]],
    width: timedelta,
    origin: datetime,
    *,
    count_unshown: bool,
) -> list[Bin]:
    """Return sums by source, bin and layer.

    Args:
        rows: what principals did.
        totals: what all of them did, in steps that are as long.
        layers: whom each layer but the first shows: layer 0 is everybody else.
        width: of the bins.
        origin: where some bin begins.
        count_unshown: whether to count the jobs in layer 0.
    """
    shown = [(kind, who, n) for n, layer in enumerate(layers, start=1) for kind, who in layer]
    kinds, whos, numbers = zip(*shown, strict=True) if shown else ((), (), ())
    is_of_io = any(piece.level in _IO for piece in rows.pieces)
    form = {
        "bin": _IO_BIN if is_of_io else _RPC_BIN,
        "sums": _IO_SUMS if is_of_io else _RPC_SUMS,
        "layer": _LAYER,
    }
    values = _values(rows) | {
        "kinds": list(kinds),
        "whos": list(whos),
        "layers": list(numbers),
        "width": width,
        "origin": origin,
    }

    def read(query: sql.SQL, rows: sql.Composed) -> list[tuple[Any, ...]]:
        with connection.cursor() as cursor:
            cursor.execute(query.format(rows=rows, **form), values)
            return list(cursor.fetchall())

    everybody = {row[:3]: row[3:] for row in read(_ALL, _union(totals, of=_NO_COLUMNS))}
    found = (
        [Bin._make((*row, 0)) for row in read(_SHOWN, _union(rows, _whose(shown)))] if shown else []
    )
    jobs = {row[:3]: row[3] for row in read(_UNSHOWN, _union(rows))} if count_unshown else {}
    rest = {key: list(sums) for key, sums in everybody.items()}
    for one in found:
        left = rest.setdefault(one[:3], [0.0] * 4)
        rest[one[:3]] = [a - b for a, b in zip(left, one[4:8], strict=True)]
    # (what came between two statements must not make the rest less than nothing)
    found += [
        Bin._make((*key, 0, *(max(amount, 0.0) for amount in sums), jobs.get(key, 0)))
        for key, sums in rest.items()
    ]
    return sorted(found)


def _whose(shown: Collection[tuple[int, int, int]]) -> sql.Composed:
    picked: dict[int, list[int]] = defaultdict(list)
    for kind, who, _ in shown:
        picked[kind].append(who)
    parts = [
        _WHOSE[Principal(kind)].format(sql.Literal(whos))
        if kind in _WHOSE
        else _OF_NOBODY.format(sql.Literal(kind))
        for kind, whos in picked.items()
    ]
    return sql.SQL("({})").format(sql.SQL(" OR ").join(parts))


def _union(
    rows: Rows, whose: sql.Composable = _EVERYBODY, of: sql.Composable = _OF_WHO
) -> sql.Composed:
    return sql.SQL(" UNION ALL ").join(_piece(piece, whose, of) for piece in rows.pieces)


def _piece(piece: Piece, whose: sql.Composable, of: sql.Composable) -> sql.Composed:
    is_of_io = piece.level in _IO
    if of is _OF_WHO:
        of = _OF_WHO.format(who=_WHO_IO if is_of_io else _WHO_RPC)
    form = {
        "start": sql.Literal(piece.start),
        "end": sql.Literal(piece.end),
        "table": sql.Identifier(piece.level.table),
        "of": of,
        "whose": whose,
    }
    if not is_of_io:
        return _RPC_PIECE.format(**form)
    is_added_up = piece.level is not levels.IO_WINDOWS
    operations = metadata_operations("w")
    return _IO_PIECE.format(
        operations=sql.Identifier("metadata_operations") if is_added_up else operations,
        time=sql.Identifier(piece.level.time),
        **form,
    )


def _values(rows: Rows) -> dict[str, Any]:
    return {
        **{kind.name: kind.value for kind in (Principal.JOB, Principal.PROCESS, Principal.HOST)},
        "TOTAL": IoWindow.Basis.TOTAL.value,
        "sources": list(rows.sources),
    }
