"""The capacity of metadata servers from traces or service statistics, cached."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl
from django.db import connection
from django.utils import timezone
from psycopg import sql

from collectors.lustre import opcodes
from collectors.lustre.service_stats import WAIT
from collectors.tables import UTC_US
from ioportal.jobs.cache import cached
from ioportal.load import baselines, service_windows
from ioportal.load.analysis import capacity
from ioportal.load.analysis.capacity import WINDOWS, Capacity
from ioportal.load.analysis.waiting import US_PER_S
from ioportal.load.impact import demand
from ioportal.site.models import Counter, ServerVersion
from ioportal.telemetry import buckets, coverage, levels, piecewise
from ioportal.telemetry.models import Coverage, ceil_to_window

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from ioportal.load.analysis.capacity import Refusal
    from ioportal.load.analysis.replay.server import Plateau
    from ioportal.site.models import Server
    from ioportal.telemetry.coverage import Interval
    from ioportal.telemetry.piecewise import Piece

_PERIOD = timedelta(days=28)
_MINUTE = levels.RPC_TOTAL_MINUTES.width

_ROWS = sql.SQL("""
SELECT start, service_id, opcode, count, timed, service_us_sum, total_us_sum FROM {table}
WHERE server_id = %(server)s AND start >= {start} AND start < {end}
""")
# The work of RPCs without a baseline: see `load.analysis.waiting.work_us`.
_WINDOWS = sql.SQL("""
SELECT date_bin(%(width)s, start, %(start)s) AS start, sum(count)::float8 AS requests,
    (coalesce(sum(count * baseline_us), 0) + coalesce(
        sum(count * service_us_sum / nullif(timed, 0)) FILTER (WHERE baseline_us IS NULL)
        / greatest(1, sum(service_us_sum) FILTER (WHERE baseline_us > 0)
            / nullif(sum(timed * baseline_us), 0)), 0
    ))::float8 AS work_us,
    coalesce(sum(total_us_sum) FILTER (WHERE baseline_us > 0), 0)::float8 AS took_us,
    coalesce(sum(timed * baseline_us), 0)::float8 AS usual_us,
    coalesce(sum(total_us_sum) FILTER (WHERE is_free), 0)::float8 AS free_took_us,
    coalesce(sum(timed * baseline_us) FILTER (WHERE is_free), 0)::float8 AS free_usual_us
FROM ({rows}) k
LEFT JOIN unnest(%(services)s::integer[], %(opcodes)s::smallint[], %(baselines)s::float8[],
    %(free)s::boolean[]) AS b (service_id, opcode, baseline_us, is_free)
    USING (service_id, opcode)
GROUP BY 1
ORDER BY 1
""")
_ROW_COLUMNS = {name: kind for name, kind in WINDOWS.items() if name not in {"end", "day"}}
_RESTARTS = """
SELECT DISTINCT counted_since FROM telemetry_servicesnapshot
WHERE server_id = %(server)s AND counter_id = %(counter)s
    AND taken_at >= %(start)s AND taken_at < %(end)s AND counted_since >= %(start)s
"""


class Method(StrEnum):
    """The source of the windows."""

    TRACES = "traces"
    STATISTICS = "statistics"


@dataclass(frozen=True)
class ServerCapacity:
    """The capacity of a server in a range, and its sources.

    Args:
        method: source of the windows.
        start: start of the used data: of the range, or the latest upgrade.
        end: end of the range.
        upgrade: version since `start`; "": no upgrade in the range.
        has_handling: whether handling times are known; otherwise times are waits in the queue.
        result: the capacity, or the reason why there is none.
        hours: mean and highest load by hour: start, mean, highest.
    """

    method: Method
    start: datetime
    end: datetime
    upgrade: str
    has_handling: bool
    result: Capacity | Refusal
    hours: pl.DataFrame


def of_server(server_id: int, method: Method, start: datetime, end: datetime) -> ServerCapacity:
    """Compute the capacity of a server from [start, end), since its latest upgrade in it."""
    upgrades = ServerVersion.objects.filter(server=server_id, since__gt=start, since__lt=end)
    upgrade = upgrades.order_by("-since").first()
    start = upgrade.since if upgrade else start
    has_handling = True
    if method is Method.TRACES:
        windows = _traced_windows(server_id, start, end)
    else:
        windows, has_handling = service_windows.read(server_id, start, end)
    windows = windows.with_columns(day=_local_day("start")).select(*WINDOWS)
    seconds = (pl.col("end") - pl.col("start")).dt.total_microseconds() / US_PER_S
    load = pl.col("work_us") / US_PER_S / seconds
    hours = windows.group_by_dynamic("start", every="1h").agg(
        mean=pl.sum("work_us") / US_PER_S / seconds.sum(), highest=load.max()
    )
    return ServerCapacity(
        method,
        start,
        end,
        upgrade.version if upgrade else "",
        has_handling,
        capacity.capacity(windows, _restarts(server_id, start, end)),
        hours,
    )


def methods(server_id: int, start: datetime, end: datetime) -> list[Method]:
    """Return the methods with data of a server in [start, end), traces first."""
    sources = {
        Coverage.Source.RPC_TRACE.value: Method.TRACES,
        Coverage.Source.MDS_STATS.value: Method.STATISTICS,
    }
    observed = Coverage.objects.filter(
        source__in=sources, source_id=server_id, start__lt=end, end__gt=start
    )
    known = {sources[source] for source in observed.values_list("source", flat=True).distinct()}
    return [method for method in Method if method in known]


def last_observed(server_id: int) -> datetime | None:
    """Return the end of the latest traces or service statistics of a server."""
    return coverage.last_timed([server_id])


def _local_day(column: str) -> pl.Expr:
    """Return the number of the day of a time, in the site's zone."""
    zone = timezone.get_current_timezone_name()
    return pl.col(column).dt.convert_time_zone(zone).dt.date().cast(pl.Int32).cast(pl.Int64)


def _restarts(server_id: int, start: datetime, end: datetime) -> list[datetime]:
    counter = Counter.objects.filter(name=WAIT).values_list("pk", flat=True).first()
    values = {"server": server_id, "counter": counter, "start": start, "end": end}
    with connection.cursor() as cursor:
        cursor.execute(_RESTARTS, values)
        return [restart for (restart,) in cursor.fetchall()]


def _usual_parameters(server_id: int, time: datetime) -> dict[str, list[Any]]:
    """Return the baselines of a server as parameters of a statement."""
    usual = baselines.at_time([server_id], time)
    # Services that handle locks: kinds of others do not wait in the same queue.
    locking = usual.filter(opcode=opcodes.LDLM_ENQUEUE)["service"].to_list()
    free = pl.col("service").is_in(locking) & (pl.col("opcode") != opcodes.LDLM_ENQUEUE)
    usual = usual.with_columns(free=free)
    names = ("service", "opcode", "baseline_us", "free")
    keys = ("services", "opcodes", "baselines", "free")
    return {key: usual[name].to_list() for key, name in zip(keys, names, strict=True)}


def _traced_windows(server_id: int, start: datetime, end: datetime) -> pl.DataFrame:
    """Return the windows of minutes that were traced completely."""
    start, end = buckets.ceil(start, _MINUTE), buckets.floor(end, _MINUTE)
    if start >= end:
        return pl.DataFrame(schema={**_ROW_COLUMNS, "end": UTC_US})
    pieces = piecewise.pieces(levels.RPC_TOTAL_MINUTES, start, end)
    values: dict[str, Any] = {
        **_usual_parameters(server_id, end),
        "server": server_id,
        "width": _MINUTE,
        "start": start,
    }
    with connection.cursor() as cursor:
        cursor.execute(_WINDOWS.format(rows=_union(_ROWS, pieces)), values)
        rows = pl.DataFrame(cursor.fetchall(), schema=_ROW_COLUMNS, orient="row")
    windows = rows.with_columns(end=pl.col("start") + _MINUTE)
    return _within(windows, coverage.traced([server_id], start, end))


def _within(windows: pl.DataFrame, observed: list[Interval]) -> pl.DataFrame:
    """Return the windows that lie in one of some disjoint intervals, in order."""
    spans = pl.DataFrame(
        [(part.start, part.end) for part in coverage.joined(observed)],
        schema={"since": UTC_US, "until": UTC_US},
        orient="row",
    )
    return windows.join_asof(spans, left_on="start", right_on="since").filter(
        pl.col("end") <= pl.col("until")
    )


def _union(form: sql.SQL, pieces: Sequence[Piece]) -> sql.Composed:
    """Return a query of the rows of all pieces; `form` selects the rows of a piece."""
    return sql.SQL(" UNION ALL ").join(
        form.format(
            table=sql.Identifier(piece.level.table),
            start=sql.Literal(piece.start),
            end=sql.Literal(piece.end),
        )
        for piece in pieces
    )


_HOUR = timedelta(hours=1)
_RENEWAL = timedelta(minutes=10)  # of cached results, while data arrives


def latest_range(last: datetime) -> tuple[datetime, datetime]:
    """Return the range of the latest capacity of a server, whose data ends at `last`."""
    end = buckets.ceil(last, _HOUR)  # cached for an hour
    return end - _PERIOD, end


def cached_of_server(
    server: Server, method: Method, start: datetime, end: datetime, last: datetime | None
) -> ServerCapacity:
    """Return the capacity of a server in a range; `last` is the end of its data."""
    return cached(
        "capacity",
        (server.pk, method.value, start, end),
        lambda: of_server(server.pk, method, start, end),
        lambda: buckets.floor(last, _RENEWAL) if last else None,
    )


def in_queues(server: Server, time: datetime) -> Plateau | None:
    """Return the capacity that the queues of the day before a time show; None: unknown.

    It is the one with which queues are served again.
    """
    end = ceil_to_window(time)
    return cached(
        "capacity-in-queues",
        (server.pk, end),
        lambda: demand.capacity(server.pk, end),
    )


class Known(NamedTuple):
    """The requests a second that a server can serve, and how that is known, in words."""

    per_s: float
    origin: str


def known(server: Server, time: datetime | None = None) -> Known | None:
    """Return the capacity of a server; None: unknown.

    It is the registered capacity, as in rules; else the knee on the capacity page, else what its
    queues show. The highest load seen is no capacity.

    Args:
        server: a metadata server.
        time: the end of a day with queues; None: queues are not read.
    """
    if server.capacity_per_s:
        return Known(server.capacity_per_s, "registered")
    last = last_observed(server.pk)
    if last:
        start, end = latest_range(last)
        for method in methods(server.pk, start, end)[:1]:
            result = cached_of_server(server, method, start, end, last).result
            if isinstance(result, Capacity) and result.knee:
                return Known(result.knee.value / result.cost_s, "measured from its latency")
    plateau = in_queues(server, time) if time else None
    return Known(plateau.requests[0], "measured while requests queued") if plateau else None
