"""The input of the estimated impact on servers that were not traced.

The times of requests are from the server's statistics (mds_stats). The loads are from I/O windows
(job_stats), and of hosts outside jobs from export statistics.
"""

from __future__ import annotations

from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl
from django.conf import settings
from django.db import connection
from psycopg import sql

from collectors.lustre.service_stats import WAIT
from ioportal.analysis import impact_estimate
from ioportal.analysis.impact import BASELINES, EVERY_SLOW_WINDOW, MAX_WAIT, WINDOWS, slow_intervals
from ioportal.analysis.impact_estimate import LOADS, WAITS
from ioportal.site.models import Counter, Server, Service, Target
from ioportal.telemetry import buckets, coverage, services
from ioportal.telemetry.coverage import Interval
from ioportal.telemetry.models import (
    IoWindow,
    Principal,
    ServiceSnapshot,
    ceil_to_window,
    floor_to_window,
)
from ioportal.telemetry.sums import metadata_operations, timed_operations

if TYPE_CHECKING:
    from datetime import datetime

    from ioportal.analysis.impact import Slowdown, SlownessCriteria

_BASELINE_PERIOD = timedelta(days=1)
_BASELINE_STEP = timedelta(minutes=10)  # periods end at multiples
_BASELINE_READS = 300
_ALL_READS = 1_000_000
_TRACE_DELAY = timedelta(minutes=2)
_SERVICES = "mdt"  # prefix of the services that handle metadata operations

_WITH_TIME, _TIME = timed_operations("w")
_LOADS = sql.SQL("""
SELECT w.start, w."end", w.kind || ':' || CASE w.kind
        WHEN %(JOB)s THEN w.job_id WHEN %(PROCESS)s THEN w.source_job_id ELSE 0
    END,
    CASE w.kind WHEN %(JOB)s THEN 'job' ELSE 'process' END,
    sum({operations})::float8,
    CASE WHEN sum({with_time}) = sum({operations}) THEN sum({time})::float8 END
FROM telemetry_iowindow w
WHERE w.target_id = ANY(%(targets)s) AND w.start >= %(earliest)s AND w.start < %(until)s
    AND w."end" > %(since)s AND w."end" > w.start AND w.basis <> %(TOTAL)s
GROUP BY 1, 2, 3, 4 HAVING sum({operations}) > 0
UNION ALL
SELECT w.start, w."end", w.kind || ':' || w.nid_id, 'host', w.metadata_operations::float8,
    w.metadata_us::float8
FROM telemetry_hostwindow w
WHERE w.target_id = ANY(%(targets)s) AND w."end" > %(since)s AND w."end" < %(latest)s
    AND w.start < %(until)s AND w."end" > w.start AND w.basis <> %(TOTAL)s AND w.kind = %(HOST)s
    AND w.metadata_operations > 0
""").format(operations=metadata_operations("w"), with_time=_WITH_TIME, time=_TIME)


class Estimate:
    """The estimated windows of a server in [start, end), which are whole windows."""

    def __init__(
        self, server_id: int, start: datetime, end: datetime, baseline_at: datetime | None = None
    ) -> None:
        """`baseline_at` is the time of the baseline; None: the start."""
        self._server = server_id
        self._span = start, end
        self._baseline_at = baseline_at or start
        self._waits = _waits(server_id, start - MAX_WAIT, end, _ALL_READS)

    @cached_property
    def baseline(self) -> pl.DataFrame:
        """The usual times of requests: columns of `BASELINES`; empty without statistics."""
        if self._waits.is_empty():  # spares reading a day
            return pl.DataFrame(schema=BASELINES)
        end = buckets.floor(self._baseline_at, _BASELINE_STEP)
        waits = _waits(self._server, end - _BASELINE_PERIOD, end, _BASELINE_READS)
        return impact_estimate.baseline(self._server, waits)

    def slowdowns(self, criteria: SlownessCriteria | None = None) -> list[Slowdown]:
        """Return the intervals in which the server left its baseline, worst first."""
        times = impact_estimate.times(self._waits, self.baseline, self._span)
        return slow_intervals(times, criteria)

    def slow_windows(self) -> pl.DataFrame:
        """Return all slow windows: columns of `WINDOWS`."""
        slow = self.slowdowns(EVERY_SLOW_WINDOW)
        return pl.concat(
            [pl.DataFrame(schema=WINDOWS), *(self.windows(each.start, each.end) for each in slow)],
            how="vertical_relaxed",
        )

    def includes(self) -> pl.Expr:
        """Return whether a window is in the span of the server."""
        start, end = self._span
        return (pl.col("server") == self._server) & pl.col("start").is_between(
            start, end, closed="left"
        )

    def windows(self, start: datetime, end: datetime) -> pl.DataFrame:
        """Return windows in a part, which begins up to `MAX_WAIT` earlier: columns of `WINDOWS`."""
        loads = _loads(self._server, start, end)
        return impact_estimate.windows(self._server, self._waits, loads, (start, end))


def untraced(server_id: int, start: datetime, end: datetime, usual: pl.DataFrame) -> list[Interval]:
    """Return the windows in [start, end) to estimate: not traced, or without a baseline.

    The next records of a trace may arrive later than counters: the windows after it are excluded.

    Args:
        server_id: a metadata server.
        start: start of the first window.
        end: end of the last window.
        usual: the baselines of traces: columns of `BASELINES`.
    """
    if usual.filter(server=server_id).is_empty():
        return [Interval(start, end)]
    traced = [
        Interval(floor_to_window(part.start), ceil_to_window(part.end) + _TRACE_DELAY)
        for part in coverage.traced([server_id], start - _TRACE_DELAY, end)
    ]
    return coverage.gaps(traced, start, end)


def _waits(server_id: int, start: datetime, end: datetime, at_most: int) -> pl.DataFrame:
    """Return requests and their times by service and interval between two reads.

    The time is the wait in the queue and the mean time of those kinds that the server times.
    """
    microseconds = ServiceSnapshot.Unit.MICROSECONDS
    differences = services.differences(server_id, start, end, at_most, microseconds)
    if differences.is_empty():
        return pl.DataFrame(schema=WAITS)
    metadata_services = Service.objects.filter(name__startswith=_SERVICES)
    of_queue = dict(Counter.objects.filter(name__startswith="req").values_list("name", "pk"))
    is_wait = pl.col("counter_id") == of_queue.get(WAIT, 0)
    is_handled = ~pl.col("counter_id").is_in(list(of_queue.values()))
    handled = pl.col("sum").filter(is_handled).sum() / pl.col("samples").filter(is_handled).sum()
    requests = pl.col("requests").cast(pl.Float64)
    return (
        differences.filter(
            ~pl.col("is_reset"),
            pl.col("end") - pl.col("start") <= settings.POLL_GAP,
            pl.col("service_id").is_in(list(metadata_services.values_list("pk", flat=True))),
        )
        .group_by("start", "end", service="service_id")
        .agg(
            requests=pl.col("samples").filter(is_wait).sum(),
            waited_us=pl.col("sum").filter(is_wait).sum(),
            handling_us=handled.fill_nan(0),
        )
        .filter(pl.col("requests") > 0)
        .with_columns(requests, handled_us=requests * pl.col("handling_us"))
        .with_columns(took_us=pl.col("waited_us") + pl.col("handled_us"))
        .select(*WAITS)
    )


def _loads(server_id: int, start: datetime, end: datetime) -> pl.DataFrame:
    mdts = Target.objects.mdts_of(Server.objects.get(pk=server_id))
    values: dict[str, Any] = {
        **{kind.name: kind.value for kind in Principal},
        "TOTAL": IoWindow.Basis.TOTAL.value,
        "targets": list(mdts.values_list("pk", flat=True)),
        "since": start,
        "until": end,
        "earliest": start - settings.POLL_GAP,  # longer intervals are gaps
        "latest": end + settings.POLL_GAP,
    }
    with connection.cursor() as cursor:
        cursor.execute(_LOADS, values)
        return pl.DataFrame(cursor.fetchall(), schema=LOADS, orient="row")
