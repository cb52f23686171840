"""What is usual on a metadata server: the median time of an RPC in its calm windows of four weeks.

Reckoned from the totals of 10 s, in the database: four weeks of them are millions of rows. What is
reckoned is stored with its period, and serves for a day; of a site that has been traced for less
than a day, for ten minutes. Intervals in which the server was slow, by what was usual before, do
not count: what is usual does not follow an incident.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl
from django.db import connection, transaction
from django.db.models import Min
from psycopg import sql

from ioportal.activity.models import Baseline, PinnedBaseline
from ioportal.analysis.impact import (
    BASELINES,
    MIN_BASELINE_WINDOWS,
    TIMES,
    Slowdown,
    SlownessCriteria,
    slow_intervals,
)
from ioportal.site.models import Server
from ioportal.telemetry import levels, rollups
from ioportal.telemetry.models import BaselinePeriod, Coverage

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ioportal.telemetry.rollups import Piece

LOOKS_BACK = timedelta(days=28)
_SERVES = timedelta(days=1)
_STEP = timedelta(minutes=10)  # periods end at whole ones
_MOMENT = timedelta(microseconds=1)
_LATE = timedelta(minutes=10)  # by then most of what agents send has come

_FROM_TOTALS = sql.SQL("""
SELECT server_id, start, service_id, opcode, timed, total_us_sum
FROM {table}
WHERE server_id = ANY(%(servers)s) AND start >= {start} AND start < {end} AND timed > 0
""")
_FROM_WINDOWS = sql.SQL("""
SELECT server_id, start, service_id, opcode, sum(timed)::bigint AS timed,
    sum(total_us_sum)::bigint AS total_us_sum
FROM {table}
WHERE server_id = ANY(%(servers)s) AND start >= {start} AND start < {end} AND timed > 0
GROUP BY 1, 2, 3, 4
""")
# Slow windows are excluded first. Loads are window sums rather than a join with their groups: where
# the totals have no statistics yet, the planner would join every row with every group.
_RECKONED = sql.SQL("""
WITH kinds AS MATERIALIZED (
    SELECT service_id, opcode, timed, total_us_sum,
        (sum(timed) OVER same)::float8 AS load, row_number() OVER same AS number
    FROM ({rows}) k WHERE NOT start <@ %(slow)s::tstzmultirange
    WINDOW same AS (PARTITION BY start, service_id)
),
usual AS (
    SELECT service_id, percentile_cont(0.5) WITHIN GROUP (ORDER BY load) AS load
    FROM kinds WHERE number = 1 GROUP BY 1
)
SELECT service_id, opcode,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY total_us_sum::float8 / timed), count(*)
FROM kinds JOIN usual USING (service_id)
WHERE kinds.load <= usual.load
GROUP BY 1, 2
HAVING count(*) >= %(fewest)s
""")
_TIMES = sql.SQL("""
SELECT server_id, start, sum(total_us_sum)::float8, sum(timed * baseline_us)
FROM ({rows}) k
JOIN unnest(%(of)s::integer[], %(services)s::integer[], %(opcodes)s::smallint[],
    %(usual)s::float8[]) AS b (server_id, service_id, opcode, baseline_us)
    USING (server_id, service_id, opcode)
GROUP BY 1, 2
HAVING sum(total_us_sum) >= %(least)s * sum(timed * baseline_us)
""")


class _Kind(NamedTuple):
    """What is usual for one kind of RPC on a server."""

    service_id: int
    opcode: int
    baseline_us: float
    windows: int


def usual(server_ids: Collection[int], at: datetime) -> pl.DataFrame:
    """Return what was usual on some servers at a moment: columns of `analysis.impact.BASELINES`.

    What is pinned goes before what is reckoned; what was not reckoned yet is, and is stored.
    """
    found = {
        (server, kind.service_id, kind.opcode): kind.baseline_us
        for server, kinds in _of_their_time(server_ids, at).items()
        for kind in kinds
    }
    pinned = PinnedBaseline.objects.at(at).filter(server__in=server_ids)
    rows_of = pinned.values_list("server", "service", "opcode", "baseline_us")
    found |= {(server, service, opcode): us for server, service, opcode, us in rows_of}
    rows = [(*key, baseline_us) for key, baseline_us in sorted(found.items())]
    return pl.DataFrame(rows, schema=BASELINES, orient="row")


def slowdowns(
    server_ids: Collection[int],
    start: datetime,
    end: datetime,
    baseline: pl.DataFrame,
    criteria: SlownessCriteria | None = None,
) -> list[Slowdown]:
    """Find the intervals in [start, end) in which servers left a baseline, worst first."""
    used = criteria or SlownessCriteria()
    columns = ("of", "services", "opcodes", "usual")
    values: dict[str, Any] = {
        **dict(zip(columns, (baseline[name].to_list() for name in BASELINES), strict=True)),
        "servers": list(server_ids),
        "least": used.leave,
    }
    query = _TIMES.format(rows=_rows(start, end))
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        times = pl.DataFrame(cursor.fetchall(), schema=TIMES, orient="row")
    return slow_intervals(times, used)


def refresh(now: datetime | None = None) -> None:
    """Have what is usual by now of all metadata servers; safe to run twice and beside itself."""
    servers = Server.objects.filter(kind=Server.Kind.MDS).values_list("pk", flat=True)
    _of_their_time(list(servers), (now or datetime.now(UTC)) - _LATE)


def _of_their_time(server_ids: Collection[int], at: datetime) -> dict[int, list[_Kind]]:
    """Return what is stored of a day before a moment, of each server; reckon what is not."""
    end = rollups.floor(at, _STEP)
    periods = [
        last
        for last in _done(server_ids, at)
        if last.end > at - _SERVES and (last.end == end or last.end - last.traced_from >= _SERVES)
    ]
    found: dict[int, list[_Kind]] = {period.server_id: [] for period in periods}
    stored = Baseline.objects.filter(period__in=periods)
    for server, *kind in stored.values_list("period__server_id", *_Kind._fields):
        found[server].append(_Kind(*kind))
    due = [server for server in server_ids if server not in found]
    start = end - LOOKS_BACK
    for server, first in _traced_from(due, start, end):
        found[server] = _reckon(
            BaselinePeriod(server_id=server, start=start, end=end, traced_from=max(first, start))
        )
    return found


def _done(server_ids: Collection[int], at: datetime) -> Any:
    """Return the newest period of each server that was reckoned and ends by a moment."""
    done = BaselinePeriod.objects.filter(server_id__in=server_ids, computed_at__isnull=False)
    return done.filter(end__lte=at).order_by("server_id", "-end").distinct("server_id")


def _traced_from(server_ids: Collection[int], start: datetime, end: datetime) -> Any:
    """Return those servers that were traced in [start, end), and since when."""
    traced = Coverage.objects.filter(
        source=Coverage.Source.RPC_TRACE, source_id__in=server_ids, start__lt=end, end__gt=start
    )
    return traced.values_list("source_id").annotate(Min("start"))


def _reckon(of: BaselinePeriod) -> list[_Kind]:
    """Reckon what is usual by the end of a period, and store it unless data changed meanwhile."""
    period = _begun(of)
    kinds = _reckoned(period, slow=())
    if slow := _slow(period, kinds):
        kinds = _reckoned(period, slow)
    with transaction.atomic():
        locked = BaselinePeriod.objects.select_for_update().filter(pk=period.pk).first()
        if locked and not locked.computed_at:
            rows = (Baseline(period=locked, **kind._asdict()) for kind in kinds)
            Baseline.objects.bulk_create(rows)
            locked.computed_at = datetime.now(UTC)
            locked.save(update_fields=["computed_at"])
    return kinds


@transaction.atomic
def _begun(of: BaselinePeriod) -> BaselinePeriod:
    """Store that a period is being reckoned.

    Totals that change after this delete it; and while it is stored, none change.
    """
    rollups.lock()
    facts = {"start": of.start, "traced_from": of.traced_from}
    period, _ = BaselinePeriod.objects.get_or_create(
        server_id=of.server_id, end=of.end, defaults=facts
    )
    return period


def _slow(period: BaselinePeriod, kinds: list[_Kind]) -> list[Slowdown]:
    """Return when a server was slow: by what is pinned or was usual before, else by `kinds`."""
    server = period.server_id
    known = {(kind.service_id, kind.opcode): kind.baseline_us for kind in kinds}
    before = _done([server], period.end - _MOMENT).filter(end__gt=period.start)
    known |= _by_kind(Baseline.objects.filter(period__in=list(before)))
    known |= _by_kind(PinnedBaseline.objects.at(period.end).filter(server=server))
    rows = [(server, *kind, us) for kind, us in known.items()]
    usual_then = pl.DataFrame(rows, schema=BASELINES, orient="row")
    return slowdowns([server], period.start, period.end, usual_then)


def _by_kind(rows: Any) -> dict[tuple[int, int], float]:
    found = rows.values_list("service", "opcode", "baseline_us")
    return {(service, opcode): baseline_us for service, opcode, baseline_us in found}


def _reckoned(period: BaselinePeriod, slow: Sequence[Slowdown]) -> list[_Kind]:
    spans = ", ".join(f"[{one.start.isoformat()}, {one.end.isoformat()})" for one in slow)
    values: dict[str, Any] = {
        "servers": [period.server_id],
        "slow": "{" + spans + "}",
        "fewest": MIN_BASELINE_WINDOWS,
    }
    with connection.cursor() as cursor:
        cursor.execute(_RECKONED.format(rows=_rows(period.start, period.end)), values)
        return [_Kind(*row) for row in cursor.fetchall()]


def _rows(start: datetime, end: datetime) -> sql.Composed:
    """Return the totals of [start, end); where they are not added up yet, what they are made of."""
    whole = (
        rollups.floor(start, levels.RPC_TOTALS.width),
        rollups.ceil(end, levels.RPC_TOTALS.width),
    )
    return sql.SQL(" UNION ALL ").join(map(_piece, rollups.pieces(levels.RPC_TOTALS, *whole)))


def _piece(piece: Piece) -> sql.Composed:
    form = _FROM_TOTALS if piece.level is levels.RPC_TOTALS else _FROM_WINDOWS
    return form.format(
        table=sql.Identifier(piece.level.table),
        start=sql.Literal(piece.start),
        end=sql.Literal(piece.end),
    )
