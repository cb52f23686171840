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

from collectors.lustre.rpc_records import LONGEST_US
from collectors.lustre.service_stats import WAIT
from ioportal.load.analysis import impact_estimate
from ioportal.load.analysis.impact_estimate import CALM_WINDOWS, LOADS, WAITS
from ioportal.load.analysis.replay.impact_by_group import IMPACTS
from ioportal.load.analysis.slowness import EVERY_SLOW_WINDOW, calm_windows, slow_intervals
from ioportal.load.analysis.waiting import BASELINES, MEMBERS, WINDOW, WINDOWS
from ioportal.load.impact import principal_windows
from ioportal.load.impact.replays import Impacts
from ioportal.rules.capacity import DEFAULT_PER_S
from ioportal.site import process_names
from ioportal.site.job_id_pattern import has_uid
from ioportal.site.models import Counter, Server, Service, Target
from ioportal.telemetry import buckets, coverage, services
from ioportal.telemetry.coverage import Interval
from ioportal.telemetry.models import (
    Coverage,
    IoWindow,
    Principal,
    ServiceSnapshot,
    ceil_to_window,
    floor_to_window,
)
from ioportal.telemetry.sums import metadata_operations, timed_operations

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from ioportal.load.analysis.slowness import SlownessCriteria
    from ioportal.load.analysis.waiting import Slowdown

_BASELINE_PERIOD = timedelta(days=1)
_BASELINE_STEP = timedelta(minutes=10)  # periods end at multiples
_BASELINE_READS = 300
_ALL_READS = 1_000_000
_TRACE_DELAY = _EXPORTS_DELAY = timedelta(minutes=2)
_CALM = timedelta(hours=1)  # before an estimate: calm windows within show the usual load
_EVIDENCE = timedelta(minutes=2)  # around an interval: polls of counters and exports differ
_POLL = timedelta(minutes=1)  # operations before a client's first poll are spread over it
_LARGEST_RATE = 1_000_000  # requests/s of a service: counters above are not true
_UNATTRIBUTED = f"{Principal.UNATTRIBUTED.value}:0"
_SERVICES = "mdt"  # prefix of the services that handle metadata operations

_WITH_TIME, _TIME = timed_operations("w")
# Nodes of several jobs may send the operations of each job on a node that others share with it. In
# the seconds in which these are of another owner, they can have sent all that the server's capacity
# allows: only a user id in the job id proves who sent it.
_LOADS = sql.SQL("""
WITH active AS MATERIALIZED (
    SELECT a.node_id, j.id AS job_id, j.owner, tstzrange(j.started_at, j.ended_at) AS run,
        tstzrange(j.started_at, j.ended_at, '[]') AS polled -- (as exports are added up by job)
    FROM jobs_job j JOIN jobs_allocation a ON a.job_id = j.id
    WHERE j.started_at IS NOT NULL
        AND tstzrange(j.started_at, j.ended_at) && tstzrange(%(earliest)s, %(latest)s)
),
shared AS MATERIALIZED (
    SELECT one.job_id, range_agg(other.polled) AS times,
        range_agg(one.run * other.run) FILTER (WHERE other.owner <> one.owner OR other.owner = '')
            AS with_others
    FROM active one JOIN active other
        ON other.node_id = one.node_id AND other.job_id <> one.job_id
    GROUP BY 1
),
counted AS (
    SELECT w.start, w."end", w.kind || ':' || CASE w.kind
            WHEN %(JOB)s THEN w.job_id
            WHEN %(PROCESS)s
                THEN (SELECT {key} FROM site_sourcejobid s WHERE s.id = w.source_job_id)
            ELSE 0
        END AS principal,
        CASE w.kind WHEN %(JOB)s THEN 'job' ELSE 'process' END AS counted_by,
        CASE WHEN shared.with_others IS NULL OR EXISTS (
            SELECT FROM site_sourcejobid s
            JOIN site_useraccount u ON u.uid = s.uid AND s.uid > 0
            JOIN jobs_job j ON j.owner = u.name
            WHERE s.id = w.source_job_id AND j.id = w.job_id
        ) THEN 0 ELSE (
            SELECT coalesce(sum(extract(epoch FROM upper(part) - lower(part))), 0)
            FROM unnest(shared.with_others * tstzmultirange(tstzrange(w.start, w."end"))) part
        ) END AS shared_s,
        sum({operations})::float8 AS operations,
        CASE WHEN sum({with_time}) = sum({operations}) THEN sum({time})::float8 END AS time_us
    FROM telemetry_iowindow w
    LEFT JOIN shared ON w.kind = %(JOB)s AND shared.job_id = w.job_id
    WHERE w.target_id = ANY(%(targets)s) AND w.start >= %(earliest)s AND w.start < %(until)s
        AND w."end" > %(since)s AND w."end" > w.start AND w.basis <> %(TOTAL)s
    GROUP BY 1, 2, 3, 4, 5 HAVING sum({operations}) > 0
)
SELECT start, "end", principal, part.counted_by, operations * part.share, time_us * part.share
FROM counted
CROSS JOIN LATERAL (
    SELECT least(1, %(capacity_per_s)s * shared_s / operations)::float8 AS claimed
) c
CROSS JOIN LATERAL (VALUES (counted_by, 1 - claimed), ('claim', claimed)) part (counted_by, share)
WHERE part.share > 0
UNION ALL
SELECT w.start, w."end", w.kind || ':' || w.nid_id, 'host', w.metadata_operations::float8,
    w.metadata_us::float8
FROM telemetry_hostwindow w
WHERE w.target_id = ANY(%(targets)s) AND w."end" > %(since)s AND w."end" < %(latest)s
    AND w.start < %(until)s AND w."end" > w.start AND w.basis <> %(TOTAL)s AND w.kind = %(HOST)s
    AND w.metadata_operations > 0
UNION ALL
SELECT CASE WHEN w.basis = %(TOTAL)s THEN w."end" - %(poll)s ELSE w.start END, w."end",
    coalesce(%(JOB)s || ':' || coalesce(shared.job_id, nullif(w.job_id, 0)), ''),
    CASE
        WHEN w.kind <> %(JOB)s THEN 'unclear'
        WHEN w.basis = %(TOTAL)s OR w.job_id = 0 THEN 'new node'
        ELSE 'node'
    END,
    w.metadata_operations::float8, w.metadata_us::float8
FROM telemetry_hostwindow w
LEFT JOIN site_nid i ON i.id = w.nid_id LEFT JOIN site_node n ON n.id = i.node_id
LEFT JOIN shared ON w.kind = %(JOB)s AND w.job_id = 0
    AND shared.times && tstzrange(w.start, w."end", '[]')
WHERE w.target_id = ANY(%(targets)s) AND w."end" > %(since)s AND w."end" < %(latest)s
    AND w.start < %(until)s AND (w."end" > w.start OR w.basis = %(TOTAL)s)
    AND (w.kind <> %(HOST)s OR n.forwards) AND w.metadata_operations > 0
""").format(
    key=sql.SQL(process_names.KEY_OF_TEXT),
    operations=metadata_operations("w"),
    with_time=_WITH_TIME,
    time=_TIME,
)


class Estimate:
    """The estimated windows of a server in [start, end), which are whole windows."""

    def __init__(
        self, server_id: int, start: datetime, end: datetime, baseline_at: datetime | None = None
    ) -> None:
        """`baseline_at` is the time of the baseline; None: the start."""
        self._server = server_id
        self._span = start, end
        self._baseline_at = baseline_at or start
        self._waits = waits(server_id, start - _CALM, end, _ALL_READS)

    @cached_property
    def baseline(self) -> pl.DataFrame:
        """The usual times of requests: columns of `BASELINES`; empty without statistics."""
        if self._waits.is_empty():  # spares reading a day
            return pl.DataFrame(schema=BASELINES)
        end = buckets.floor(self._baseline_at, _BASELINE_STEP)
        of_day = waits(self._server, end - _BASELINE_PERIOD, end, _BASELINE_READS)
        return impact_estimate.baseline(self._server, of_day)

    @cached_property
    def _sent_to(self) -> tuple[Server, list[int]]:
        """The server and its MDTs."""
        server = Server.objects.get(pk=self._server)
        return server, _mdts(server)

    def slowdowns(self, criteria: SlownessCriteria | None = None) -> list[Slowdown]:
        """Return the intervals in which the server left its baseline, worst first."""
        return slow_intervals(self._times.filter(pl.col("start") >= self._span[0]), criteria)

    @cached_property
    def _times(self) -> pl.DataFrame:
        """The times of requests, with those before the span."""
        start, end = self._span
        return impact_estimate.times(self._waits, self.baseline, (start - _CALM, end))

    @cached_property
    def slow_windows(self) -> pl.DataFrame:
        """All slow windows: columns of `WINDOWS`."""
        return _concat(WINDOWS, self._slow.values())

    @cached_property
    def _slow(self) -> dict[Slowdown, pl.DataFrame]:
        slow = self.slowdowns(EVERY_SLOW_WINDOW)
        return {each: self._windows(each.start, each.end) for each in slow}

    @cached_property
    def impact(self) -> Impacts:
        """The impact in all slow windows."""
        impacts, members = [], []
        for slow, windows in self._slow.items():
            calm = calm_windows(self._times, slow.start, CALM_WINDOWS)
            before = self._windows(calm[0], calm[-1] + WINDOW) if calm else windows.clear()
            rows = pl.concat([windows, before.filter(pl.col("start").is_in(calm))])
            groups = principal_windows.members(windows)
            impacts.append(impact_estimate.by_window(rows, self.baseline, groups, calm))
            members.append(groups)
        return Impacts(_concat(IMPACTS, impacts), _concat(MEMBERS, members).unique("principal"))

    def includes(self) -> pl.Expr:
        """Return whether a window is in the span of the server."""
        start, end = self._span
        return (pl.col("server") == self._server) & pl.col("start").is_between(
            start, end, closed="left"
        )

    def _windows(self, start: datetime, end: datetime) -> pl.DataFrame:
        around = start - _EVIDENCE, end + _EVIDENCE
        loads = impact_estimate.by_nodes(
            _loads(*self._sent_to, *around),
            _exports_observed(self._sent_to[1], *around),
            unattributed=_UNATTRIBUTED,
            claim=principal_windows.CLAIM,
        )
        return impact_estimate.windows(self._server, self._waits, loads, (start, end))


def _concat(schema: Mapping[str, pl.DataType], frames: Iterable[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat([pl.DataFrame(schema=schema), *frames], how="vertical_relaxed")


def untraced(server_id: int, start: datetime, end: datetime, usual: pl.DataFrame) -> list[Interval]:
    """Return the windows in [start, end) to estimate: not traced, or without a baseline.

    The next records of a trace may arrive later than counters: the windows after it are excluded.
    So are those after the last poll of exports, where only exports show whose operations they are.

    Args:
        server_id: a metadata server.
        start: start of the first window.
        end: end of the last window.
        usual: the baselines of traces: columns of `BASELINES`.
    """
    excluded = _awaiting_exports(server_id)
    if not usual.filter(server=server_id).is_empty():
        excluded += [
            Interval(floor_to_window(part.start), ceil_to_window(part.end) + _TRACE_DELAY)
            for part in coverage.traced([server_id], start - _TRACE_DELAY, end)
        ]
    return coverage.gaps(sorted(excluded), start, end)


def _awaiting_exports(server_id: int) -> list[Interval]:
    """Return the interval whose exports are awaited: job ids with a user id need no other proof."""
    server = Server.objects.select_related("filesystem").get(pk=server_id)
    if has_uid(server.filesystem.job_id_pattern):
        return []
    mdts = dict.fromkeys(_mdts(server), settings.POLL_GAP)
    last = coverage.last_observed(Coverage.Source.EXPORTS, mdts)
    if not last or len(last) < len(mdts):
        return []
    since = min(last.values())
    return [Interval(floor_to_window(since), floor_to_window(since + _EXPORTS_DELAY))]


def _mdts(server: Server) -> list[int]:
    return list(Target.objects.mdts_of(server).values_list("pk", flat=True))


def waits(
    server_id: int,
    start: datetime,
    end: datetime,
    at_most: int,
    longest: timedelta | None = None,
) -> pl.DataFrame:
    """Return requests and their times by service and interval between two reads.

    The time is the wait in the queue and the mean time of those kinds that the server times.
    Intervals with impossible numbers are missing: they would exceed 64 bits, and blame someone.
    `at_most` reads are used; intervals over `longest` (default: the poll gap) are missing.
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
    seconds = (pl.col("end") - pl.col("start")).dt.total_microseconds() / 1e6
    return (
        differences.filter(
            ~pl.col("is_reset"),
            pl.col("end") - pl.col("start") <= (longest or settings.POLL_GAP),
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
        .filter(
            pl.col("requests") <= _LARGEST_RATE * seconds,
            pl.col("took_us") <= LONGEST_US * pl.col("requests"),
        )
        .select(*WAITS)
    )


def _exports_observed(mdts: list[int], start: datetime, end: datetime) -> list[Interval]:
    """Return the windows in [start, end) in which the exports of all MDTs were polled."""
    polled = coverage.by_source(
        Coverage.Source.EXPORTS, dict.fromkeys(mdts, settings.POLL_GAP), start, end
    )
    missing = [
        gap
        for mdt in mdts
        for gap in coverage.gaps([part for target, part in polled if target == mdt], start, end)
    ]
    observed = [
        Interval(ceil_to_window(part.start), floor_to_window(part.end))
        for part in coverage.gaps(sorted(missing), start, end)
    ]
    return [part for part in observed if part.start < part.end]


def _loads(server: Server, mdts: list[int], start: datetime, end: datetime) -> pl.DataFrame:
    values: dict[str, Any] = {
        **{kind.name: kind.value for kind in Principal},
        "TOTAL": IoWindow.Basis.TOTAL.value,
        "targets": mdts,
        "since": start,
        "until": end,
        "earliest": start - settings.POLL_GAP,  # longer intervals are gaps
        "latest": end + settings.POLL_GAP,
        "poll": _POLL,
        "capacity_per_s": server.capacity_per_s or DEFAULT_PER_S,
    }
    with connection.cursor() as cursor:
        cursor.execute(_LOADS, values)
        return pl.DataFrame(cursor.fetchall(), schema=LOADS, orient="row")
