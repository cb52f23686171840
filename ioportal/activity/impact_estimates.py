"""Estimated impact of users and processes on a server, where it was not traced.

The times of requests are from the server's statistics (mds_stats), the load of users from I/O
windows (job_stats).
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl
from django.db import connection
from psycopg import sql

from collectors.lustre.service_stats import WAIT
from ioportal.analysis.impact_estimate import LOADS, WAITS, estimate
from ioportal.site.models import Counter, Service
from ioportal.telemetry import buckets, coverage, levels, piecewise, services
from ioportal.telemetry.models import IoWindow, Principal, ServiceSnapshot
from ioportal.telemetry.sums import metadata_operations, timed_operations

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from ioportal.telemetry.coverage import Interval
    from ioportal.telemetry.piecewise import Piece

_MIN_IMPACT_S = 1.0  # smaller impacts are not listed
_MAX_READS = 300
_MIN_BASELINE_INTERVALS = 20
_BASELINE_PERIOD = timedelta(days=1)  # before the range
_FINE = timedelta(days=1)  # longest range of which single polls are read
_SERVICES = "mdt"  # prefix of the services that handle metadata operations

_WITH_TIME, _TIME = timed_operations("w")
_LOADS = sql.SQL("""
SELECT w.start, w."end", w.kind || ':' || CASE w.kind
        WHEN %(JOB)s THEN j.owner WHEN %(PROCESS)s THEN s.text ELSE ''
    END AS principal,
    sum(w.operations)::float8,
    CASE WHEN sum(w.with_time) = sum(w.operations) THEN sum(w.time)::float8 END
FROM ({rows}) w
LEFT JOIN jobs_job j ON w.kind = %(JOB)s AND j.id = w.job_id
LEFT JOIN site_sourcejobid s ON w.kind = %(PROCESS)s AND s.id = w.source_job_id
GROUP BY 1, 2, 3 HAVING sum(w.operations) > 0
""")
_PIECE = sql.SQL("""
SELECT start, "end", kind, job_id, source_job_id, {operations} AS operations,
    {with_time} AS with_time, {spent} AS time
FROM {table} w
WHERE {column} >= {start} AND {column} < {end} AND target_id = ANY(%(targets)s)
    AND basis <> %(TOTAL)s AND "end" > start
""")


class EstimatedImpact(NamedTuple):
    """The estimated impact of a user or process."""

    kind: Principal
    name: str  # of the user or process; "": all principals of the kind
    share: float  # of the load
    impact_s: float  # extra waiting of others because of it
    suffered_s: float  # its own extra waiting

    @property
    def is_user(self) -> bool:
        """Whether it has a user page."""
        return self.kind is Principal.JOB and bool(self.name)

    @property
    def label(self) -> str:
        """Its name on pages."""
        if self.kind is Principal.JOB:
            return self.name or "jobs without a user"
        return f"process {self.name}" if self.kind is Principal.PROCESS else str(self.kind.label)


def by_principal(
    server_id: int, targets: Collection[int], start: datetime, end: datetime
) -> list[EstimatedImpact]:
    """Return the estimated impact on a server in the untraced parts of [start, end).

    Args:
        server_id: a metadata server.
        targets: its MDTs.
        start: start of the range.
        end: end of the range.
    """
    usual = _usual(_times(server_id, start - _BASELINE_PERIOD, end))
    if usual.is_empty():
        return []
    traced = coverage.traced([server_id], start, end)
    waits = _waits(_times(server_id, start, end), usual, traced)
    if waits.is_empty():
        return []
    impacts = estimate(_loads(targets, start, end), waits).filter(
        pl.col("impact_s") >= _MIN_IMPACT_S
    )
    return [_named(*row) for row in impacts.iter_rows()]


def _named(principal: str, share: float, impact_s: float, suffered_s: float) -> EstimatedImpact:
    kind, _, name = principal.partition(":")
    return EstimatedImpact(Principal(int(kind)), name, share, impact_s, suffered_s)


def _times(server_id: int, start: datetime, end: datetime) -> pl.DataFrame:
    """Return requests and their mean time by service and interval between two reads.

    The time is the wait in the queue and the mean time of those kinds that the server times.
    """
    differences = services.differences(server_id, start, end, _MAX_READS)
    metadata_services = Service.objects.filter(name__startswith=_SERVICES)
    of_queue = dict(Counter.objects.filter(name__startswith="req").values_list("name", "pk"))
    is_wait = pl.col("counter_id") == of_queue.get(WAIT, 0)
    is_timed = pl.col("unit") == ServiceSnapshot.Unit.MICROSECONDS.value
    is_handled = is_timed & ~pl.col("counter_id").is_in(list(of_queue.values()))
    handled = pl.col("sum").filter(is_handled).sum() / pl.col("samples").filter(is_handled).sum()
    return (
        differences.filter(
            ~pl.col("is_reset"),
            pl.col("service_id").is_in(list(metadata_services.values_list("pk", flat=True))),
        )
        .group_by("service_id", "start", "end")
        .agg(
            requests=pl.col("samples").filter(is_wait).sum(),
            waited_us=pl.col("sum").filter(is_wait).sum(),
            handling_us=handled.fill_nan(0),
        )
        .filter(pl.col("requests") > 0)
        .with_columns(mean_us=pl.col("waited_us") / pl.col("requests") + pl.col("handling_us"))
        .with_columns(
            rate=pl.col("requests") / (pl.col("end") - pl.col("start")).dt.total_microseconds()
        )
    )


def _usual(times: pl.DataFrame) -> pl.DataFrame:
    """Return the baseline of each service: the median of intervals of below-median load."""
    calm = times.filter(pl.col("rate") <= pl.col("rate").median().over("service_id"))
    return (
        calm.group_by("service_id")
        .agg(usual_us=pl.median("mean_us"), intervals=pl.len())
        .filter(pl.col("intervals") >= _MIN_BASELINE_INTERVALS)
        .drop("intervals")
    )


def _waits(times: pl.DataFrame, usual: pl.DataFrame, traced: list[Interval]) -> pl.DataFrame:
    """Return columns of `WAITS` of all services together, outside of traced intervals."""
    middle = pl.col("start") + (pl.col("end") - pl.col("start")) / 2
    is_traced = pl.any_horizontal(
        pl.lit(value=False), *(middle.is_between(part.start, part.end) for part in traced)
    )
    requests = pl.col("requests")
    return (
        times.join(usual, on="service_id")
        .filter(~is_traced)
        .group_by("start", "end")
        .agg(
            requests=requests.sum().cast(pl.Float64),
            took_us=(requests * pl.col("mean_us")).sum(),
            usual_us=(requests * pl.col("usual_us")).sum(),
        )
        .select(*WAITS)
    )


def _loads(targets: Collection[int], start: datetime, end: datetime) -> pl.DataFrame:
    level = levels.IO_WINDOWS if end - start <= _FINE else levels.IO_TEN_MINUTES
    width = levels.IO_TEN_MINUTES.width  # of windows that begin before the range
    span = buckets.floor(start - width, width), buckets.ceil(end, width)
    rows = sql.SQL(" UNION ALL ").join(map(_query, piecewise.pieces(level, *span)))
    values: dict[str, Any] = {
        "JOB": Principal.JOB.value,
        "PROCESS": Principal.PROCESS.value,
        "TOTAL": IoWindow.Basis.TOTAL.value,
        "targets": list(targets),
    }
    with connection.cursor() as cursor:
        cursor.execute(_LOADS.format(rows=rows), values)
        return pl.DataFrame(cursor.fetchall(), schema=LOADS, orient="row")


def _query(piece: Piece) -> sql.Composed:
    return _PIECE.format(
        operations=metadata_operations("w"),
        with_time=_WITH_TIME,
        spent=_TIME,
        table=sql.Identifier(piece.level.table),
        column=sql.Identifier(piece.level.time),
        start=sql.Literal(piece.start),
        end=sql.Literal(piece.end),
    )
