"""Baselines of metadata servers: the median RPC time in windows of low load over four weeks.

Computed in the database from 10 s totals: four weeks have millions of rows. Baselines are stored
with their period and are valid for a day, or for ten minutes where less than a day of the period
was traced. Intervals in which the server was slow by the previous baseline are excluded, so that
baselines do not follow an incident.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl
from django.db import connection, transaction
from django.db.models import Sum
from django.db.models.functions import Greatest, Least
from psycopg import sql

from ioportal.load.analysis.slowness import TIMES, SlownessCriteria, slow_intervals
from ioportal.load.analysis.waiting import BASELINES, MIN_BASELINE_WINDOWS, Slowdown
from ioportal.load.models import Baseline, PinnedBaseline
from ioportal.site.models import Server
from ioportal.telemetry import buckets, levels, piecewise, rollups
from ioportal.telemetry.coverage import Interval
from ioportal.telemetry.models import BaselinePeriod, Coverage

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from ioportal.telemetry.piecewise import Piece

PERIOD = timedelta(days=28)
_VALIDITY = timedelta(days=1)
_STEP = timedelta(minutes=10)  # periods end at multiples
_MICROSECOND = timedelta(microseconds=1)
_SPAN = timedelta(hours=1)
_DELAY = timedelta(minutes=10)  # most batches of agents have arrived by then

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
_MEDIANS = sql.SQL("""
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
HAVING count(*) >= %(min_windows)s
""")
_TIMES = sql.SQL("""
SELECT server_id, start, sum(total_us_sum)::float8, sum(timed * baseline_us)
FROM ({rows}) k
JOIN unnest(%(server_ids)s::integer[], %(services)s::integer[], %(opcodes)s::smallint[],
    %(baselines)s::float8[]) AS b (server_id, service_id, opcode, baseline_us)
    USING (server_id, service_id, opcode)
GROUP BY 1, 2
HAVING sum(total_us_sum) >= %(at_least)s * sum(timed * baseline_us)
""")


class _Kind(NamedTuple):
    """The baseline of one kind of RPC on a server."""

    service_id: int
    opcode: int
    baseline_us: float
    windows: int


def at_time(server_ids: Collection[int], time: datetime) -> pl.DataFrame:
    """Return the baselines of servers at a time: columns of `load.analysis.waiting.BASELINES`.

    Pinned baselines replace computed ones. Missing ones are computed and stored.
    """
    baselines = {
        (server, kind.service_id, kind.opcode): kind.baseline_us
        for server, kinds in _computed_at(server_ids, time).items()
        for kind in kinds
    }
    pinned = PinnedBaseline.objects.at(time).filter(server__in=server_ids)
    pinned_rows = pinned.values_list("server", "service", "opcode", "baseline_us")
    baselines |= {(server, service, opcode): us for server, service, opcode, us in pinned_rows}
    rows = [(*key, baseline_us) for key, baseline_us in sorted(baselines.items())]
    return pl.DataFrame(rows, schema=BASELINES, orient="row")


def spans(start: datetime, end: datetime) -> Iterator[Interval]:
    """Divide a range into spans whose impact is computed with the baselines of their start.

    Later baselines may include an old log that was loaded with a storm.
    """
    while start < end:
        until = min(buckets.floor(start, _SPAN) + _SPAN, end)
        yield Interval(start, until)
        start = until


def times(
    server_ids: Collection[int],
    start: datetime,
    end: datetime,
    baseline: pl.DataFrame,
    at_least: float = 0,
) -> pl.DataFrame:
    """Return the times of servers' RPCs in windows of [start, end): columns of `TIMES`.

    Windows in which RPCs took less than `at_least` times as long as usual are missing.
    """
    columns = ("server_ids", "services", "opcodes", "baselines")
    values: dict[str, Any] = {
        **dict(zip(columns, (baseline[name].to_list() for name in BASELINES), strict=True)),
        "servers": list(server_ids),
        "at_least": at_least,
    }
    with connection.cursor() as cursor:
        cursor.execute(_TIMES.format(rows=_rows(start, end)), values)
        return pl.DataFrame(cursor.fetchall(), schema=TIMES, orient="row")


def slowdowns(
    server_ids: Collection[int],
    start: datetime,
    end: datetime,
    baseline: pl.DataFrame,
    criteria: SlownessCriteria | None = None,
) -> list[Slowdown]:
    """Return the intervals in [start, end) in which servers left a baseline, worst first."""
    used = criteria or SlownessCriteria()
    return slow_intervals(times(server_ids, start, end, baseline, used.leave), used)


def refresh(now: datetime | None = None) -> None:
    """Compute missing baselines of all metadata servers; safe to run twice and concurrently."""
    servers = Server.objects.filter(kind=Server.Kind.MDS).values_list("pk", flat=True)
    _computed_at(list(servers), (now or datetime.now(UTC)) - _DELAY)


def _computed_at(server_ids: Collection[int], time: datetime) -> dict[int, list[_Kind]]:
    """Return the valid baselines of each server at a time; missing ones are computed."""
    end = buckets.floor(time, _STEP)
    periods = [
        period
        for period in _latest_periods(server_ids, time)
        if period.end > time - _VALIDITY and (period.end == end or period.traced >= _VALIDITY)
    ]
    # An old period of too few windows is not valid: newer windows may suffice.
    baselines: dict[int, list[_Kind]] = {
        period.server_id: [] for period in periods if period.end == end
    }
    stored = Baseline.objects.filter(period__in=periods)
    for server, *kind in stored.values_list("period__server_id", *_Kind._fields):
        baselines.setdefault(server, []).append(_Kind(*kind))
    due = [server for server in server_ids if server not in baselines]
    start = end - PERIOD
    for server, traced in _traced_servers(due, start, end):
        period = BaselinePeriod(server_id=server, start=start, end=end, traced=traced)
        baselines[server] = _compute(period)
    return baselines


def _latest_periods(server_ids: Collection[int], time: datetime) -> Any:
    """Return the latest computed period of each server that ends by a time."""
    computed = BaselinePeriod.objects.filter(server_id__in=server_ids, computed_at__isnull=False)
    return computed.filter(end__lte=time).order_by("server_id", "-end").distinct("server_id")


def _traced_servers(server_ids: Collection[int], start: datetime, end: datetime) -> Any:
    """Return the servers that were traced in [start, end), and for how long."""
    traces = Coverage.objects.filter(
        source=Coverage.Source.RPC_TRACE, source_id__in=server_ids, start__lt=end, end__gt=start
    )
    length = Least("end", end) - Greatest("start", start)
    return traces.values_list("source_id").annotate(traced=Sum(length))


def _compute(period: BaselinePeriod) -> list[_Kind]:
    """Compute the baselines of a period.

    They are stored unless data changed meanwhile, or a roll-up runs: pages do not wait for it.
    """
    stored = _stored_period(period)
    kinds = _medians(period, slow=())
    if slow := _slow_intervals(period, kinds):
        kinds = _medians(period, slow)
    if stored:
        with transaction.atomic():
            locked = BaselinePeriod.objects.select_for_update().filter(pk=stored.pk).first()
            if locked and not locked.computed_at:
                rows = (Baseline(period=locked, **kind._asdict()) for kind in kinds)
                Baseline.objects.bulk_create(rows)
                locked.computed_at = datetime.now(UTC)
                locked.save(update_fields=["computed_at"])
    return kinds


@transaction.atomic
def _stored_period(period: BaselinePeriod) -> BaselinePeriod | None:
    """Store a period before its computation; None: a roll-up runs.

    A later change of its totals deletes it; the lock excludes a change at the same time.
    """
    if not rollups.try_lock():
        return None
    stored, _ = BaselinePeriod.objects.get_or_create(
        server_id=period.server_id,
        end=period.end,
        defaults={"start": period.start, "traced": period.traced},
    )
    return stored


def _slow_intervals(period: BaselinePeriod, kinds: list[_Kind]) -> list[Slowdown]:
    """Return when a server was slow, by pinned or previous baselines, else by `kinds`."""
    server = period.server_id
    baselines = {(kind.service_id, kind.opcode): kind.baseline_us for kind in kinds}
    previous = _latest_periods([server], period.end - _MICROSECOND).filter(end__gt=period.start)
    baselines |= _by_kind(Baseline.objects.filter(period__in=list(previous)))
    baselines |= _by_kind(PinnedBaseline.objects.at(period.end).filter(server=server))
    rows = [(server, *kind, us) for kind, us in baselines.items()]
    frame = pl.DataFrame(rows, schema=BASELINES, orient="row")
    return slowdowns([server], period.start, period.end, frame)


def _by_kind(rows: Any) -> dict[tuple[int, int], float]:
    columns = rows.values_list("service", "opcode", "baseline_us")
    return {(service, opcode): baseline_us for service, opcode, baseline_us in columns}


def _medians(period: BaselinePeriod, slow: Sequence[Slowdown]) -> list[_Kind]:
    spans = ", ".join(f"[{part.start.isoformat()}, {part.end.isoformat()})" for part in slow)
    values: dict[str, Any] = {
        "servers": [period.server_id],
        "slow": "{" + spans + "}",
        "min_windows": MIN_BASELINE_WINDOWS,
    }
    with connection.cursor() as cursor:
        cursor.execute(_MEDIANS.format(rows=_rows(period.start, period.end)), values)
        return [_Kind(*row) for row in cursor.fetchall()]


def _rows(start: datetime, end: datetime) -> sql.Composed:
    """Return a query of the totals in [start, end), from windows where totals are pending."""
    whole = (
        buckets.floor(start, levels.RPC_TOTALS.width),
        buckets.ceil(end, levels.RPC_TOTALS.width),
    )
    return sql.SQL(" UNION ALL ").join(map(_piece, piecewise.pieces(levels.RPC_TOTALS, *whole)))


def _piece(piece: Piece) -> sql.Composed:
    form = _FROM_TOTALS if piece.level is levels.RPC_TOTALS else _FROM_WINDOWS
    return form.format(
        table=sql.Identifier(piece.level.table),
        start=sql.Literal(piece.start),
        end=sql.Literal(piece.end),
    )
