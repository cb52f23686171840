"""The statistics stage: metrics of jobs from their windows and accounting records.

Definitions: docs/metrics.md, generated from `ioportal.metrics`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from psycopg import sql

from collectors.tables import METADATA_OPERATIONS
from ioportal.core.postgres.advisory_locks import Lock, hold
from ioportal.jobs import statistics_queries
from ioportal.jobs.analysis import quality
from ioportal.jobs.analysis.anonymity import shown
from ioportal.jobs.models import DirtyEvidence, DirtyStatistics, Job, JobStatistics
from ioportal.jobs.statistics_queries import MAX_GAP
from ioportal.telemetry import levels, planner, retention
from ioportal.telemetry.models import LARGEST_BIGINT, RetentionLog
from ioportal.telemetry.sums import metadata_operations


def refresh_statistics(limit: int = 500) -> int:
    """Compute the statistics of changed jobs; return the number of claimed jobs.

    Callers repeat this until it returns 0. Running jobs with recent statistics stay pending then.
    Safe to run repeatedly and concurrently.
    """
    with transaction.atomic():
        # Serialized: concurrent runs could store outdated statistics last.
        hold(Lock.STATISTICS)
        running = JobStatistics.objects.filter(
            job__ended_at=None, computed_at__gt=datetime.now(UTC) - settings.STATISTICS_INTERVAL
        )
        pending = DirtyStatistics.objects.exclude(job_id__in=running.values("job_id"))
        claimed = {row.job_id for row in pending.next(limit)}
        DirtyStatistics.objects.filter(job_id__in=claimed).delete()
        jobs = list(Job.objects.filter(pk__in=claimed, started_at__isnull=False).order_by("pk"))
        figures = _Figures.compute(jobs)
        rows = [figures.statistics(job) for job in jobs]
        _restore_expired(jobs, rows)
        JobStatistics.objects.bulk_create(
            rows,
            update_conflicts=True,
            unique_fields=["job"],
            update_fields=_COMPUTED,
        )
        _copy_quality(rows)
        DirtyEvidence.objects.mark(row.job_id for row in rows)
        return len(claimed)


def _copy_quality(rows: list[JobStatistics]) -> None:
    """Copy quality grades to the jobs; last, because loads wait for the lock."""
    hold(Lock.ACCOUNTING)  # prevents deadlocks with loads
    for grade in JobStatistics.Quality:
        job_ids = [row.job_id for row in rows if row.quality == grade]
        Job.objects.filter(pk__in=job_ids).exclude(quality=grade).update(quality=grade)


_COMPUTED = [
    field.name
    for field in JobStatistics._meta.concrete_fields  # noqa: SLF001  (documented meta API)
    if field.name != "job"
]

# Columns by data source.
_FROM_RECORD = ("computed_at", "duration_s", "node_count", "cpu_efficiency")
_FROM_TRACES = (
    "metadata_rpcs",
    "lock_enqueues",
    "counted_enqueues",
    "metadata_rpc_rate",
    "mean_service_us",
    "max_service_us",
    "mean_queue_us",
)
_FROM_COUNTERS = [name for name in _COMPUTED if name not in {*_FROM_RECORD, *_FROM_TRACES}]

_Row = dict[str, Any]


def _restore_expired(jobs: list[Job], rows: list[JobStatistics]) -> None:
    """Restore stored figures of runs whose windows have expired."""
    if not RetentionLog.objects.exists():
        return
    always = retention.ALWAYS
    stored = JobStatistics.objects.in_bulk([job.pk for job in jobs])
    for level, names in (
        (levels.ATTRIBUTED_RPCS, _FROM_TRACES),
        (levels.IO_WINDOWS, _FROM_COUNTERS),
    ):
        expired = retention.dropped([level], *always)
        for job, row in zip(jobs, rows, strict=True):
            start, end = job.started_at or always.end, job.ended_at or always.end
            if (previous := stored.get(job.pk)) and any(
                interval.start < end and interval.end > start for interval in expired
            ):
                for name in names:
                    setattr(row, name, getattr(previous, name))


@dataclass(frozen=True)
class _Figures:
    """Results of each query by job."""

    now: datetime
    runs: dict[int, _Row]
    io: dict[int, _Row]
    peaks: dict[int, _Row]
    shares: dict[int, _Row]
    rpcs: dict[int, _Row]
    traced: dict[int, _Row]
    mdt_coverage: dict[int, _Row]
    ost_coverage: dict[int, _Row]
    ambiguous: dict[int, _Row]
    contradicted: dict[int, _Row]
    not_sent: dict[int, _Row]

    @classmethod
    def compute(cls, jobs: list[Job]) -> _Figures:
        """Run all queries for a batch of jobs."""
        now = datetime.now(UTC)
        values: _Row = statistics_queries.PARAMETERS | {
            "jobs": [job.pk for job in jobs],
            "gap": settings.POLL_GAP,
            "now": now,
        }
        by_job_id = values | _job_ids(jobs, values)
        traced = _by_job(statistics_queries.TRACED, values)
        return cls(
            now,
            runs=_by_job(statistics_queries.RUNS, values),
            io=_by_job(statistics_queries.IO_TOTALS, values),
            peaks=_by_job(_PEAKS, values | {"traced": [*traced]}),
            shares=_by_job(statistics_queries.TARGET_SHARES, values),
            rpcs=_by_job(statistics_queries.RPC_TOTALS, values),
            traced=traced,
            mdt_coverage=_by_job(statistics_queries.MDT_COVERAGE, values),
            ost_coverage=_by_job(statistics_queries.OST_COVERAGE, values),
            ambiguous=_hashed(statistics_queries.AMBIGUOUS, by_job_id),
            contradicted=_hashed(statistics_queries.CONTRADICTED, by_job_id),
            not_sent=_by_job(statistics_queries.NOT_SENT, values),
        )

    def statistics(self, job: Job) -> JobStatistics:
        """Return the statistics of a job."""
        run = self.runs[job.pk]
        duration_s = (run["end"] - run["start"]).total_seconds()
        row = JobStatistics(
            job=job,
            computed_at=self.now,
            duration_s=duration_s,
            node_count=job.node_count or None,
            cpu_efficiency=_ratio(job.cpu_s, job.core_count * duration_s) if job.ended_at else None,
        )
        covered_s = self.mdt_coverage.get(job.pk, {}).get("covered_s") or 0.0
        row.covered_share = min(1.0, covered_s / duration_s) if duration_s else 0.0
        osts = self.ost_coverage.get(job.pk, {"targets": 0, "covered_s": 0.0})
        io = self.io.get(job.pk)
        row.bytes_quality, row.bytes_reasons = quality.grade_bytes(
            osts["targets"],
            min(1.0, osts["covered_s"] / duration_s) if duration_s else 0.0,
            io["ost_resets"] if io else 0,
            is_counted=bool(io and io["is_counted_by_osts"]),
        )
        if io:
            _set_io(row, io, covered_s, timedelta(seconds=duration_s))
        if io and row.bytes_quality:
            _set_bytes(row, io)
        _set_peak(row, self.peaks.get(job.pk))
        row.largest_target_share = shown(
            "largest_target_share", self.shares.get(job.pk, {}).get("share")
        )
        if traced := self.traced.get(job.pk):
            _set_rpcs(row, self.rpcs.get(job.pk, {}), traced["traced_s"])
        ambiguous = self.ambiguous[job.pk]
        row.ambiguous_share = max(
            _share(ambiguous["operations"], row.metadata_operations),
            _share(ambiguous["rpcs"], row.metadata_rpcs),
        )
        contradicted = self.contradicted[job.pk]
        row.contradicted_share = max(
            _share(contradicted["claims"], row.metadata_rpcs),
            min(1.0, _ratio(contradicted["claiming"], row.metadata_rpcs) or 0.0),
            _ratio(self.not_sent.get(job.pk, {}).get("operations"), row.metadata_operations) or 0.0,
        )
        evaluated = quality.grade(
            row.covered_share, row.ambiguous_share, row.contradicted_share, row.resets
        )
        row.quality, row.quality_reasons = evaluated.grade, list(evaluated.reasons)
        return row


def _job_ids(jobs: list[Job], values: _Row) -> _Row:
    """Return the job ids in telemetry of jobs, and the time of all runs, for queries."""
    with connection.cursor() as cursor:
        cursor.execute(statistics_queries.JOB_IDS, values)
        links = cursor.fetchall()
    return {
        "source_job_ids": [source_job_id for source_job_id, _ in links],
        "linked_jobs": [job_id for _, job_id in links],
        "first": min((job.started_at for job in jobs if job.started_at), default=values["now"]),
        "last": max((job.ended_at or values["now"] for job in jobs), default=values["now"]),
    }


def _hashed(query: str, values: _Row) -> dict[int, _Row]:
    with planner.settings(enable_nestloop="off"):
        return _by_job(query, values)


def _set_io(row: JobStatistics, io: _Row, covered_s: float, duration: timedelta) -> None:
    """Set figures from job_stats of MDTs."""
    nodes = row.node_count
    for kind in METADATA_OPERATIONS:
        setattr(row, f"count_{kind}", _whole(io[f"count_{kind}"]))
        setattr(row, f"mean_{kind}_us", _ratio(io[f"mean_{kind}_us"], 1))
    row.mean_operation_us = _ratio(io["operations_us"], io["operations_with_time"])
    row.metadata_operations = operations = _whole(io["metadata_operations"])
    row.opens, row.closes = _whole(io["count_open"]), _whole(io["count_close"])
    row.open_close_ratio = _ratio(row.opens, row.closes)
    row.metadata_operations_per_node = _ratio(operations, nodes)
    row.metadata_rate = _ratio(_whole(io["timed_operations"]), covered_s)
    if io["widest"] is not None and io["widest"] <= statistics_queries.STARTUP_SHARE * duration:
        row.startup_share = _ratio(io["startup_operations"] or 0, operations)
    row.resets = io["resets"]


def _set_bytes(row: JobStatistics, io: _Row) -> None:
    """Set bytes and request sizes from job_stats of OSTs, and of MDTs for small files."""
    row.read_bytes, row.write_bytes = _whole(io["read_bytes"]), _whole(io["write_bytes"])
    row.read_bytes_per_node = _ratio(row.read_bytes, row.node_count)
    row.write_bytes_per_node = _ratio(row.write_bytes, row.node_count)
    row.mean_read_bytes = _ratio(row.read_bytes, io["reads"])
    row.mean_write_bytes = _ratio(row.write_bytes, io["writes"])


def _set_rpcs(row: JobStatistics, rpcs: _Row, traced_s: float) -> None:
    """Set figures from RPC traces; a traced job without RPCs has zero."""
    row.metadata_rpcs = _whole(rpcs.get("rpcs")) or 0
    row.lock_enqueues = _whole(rpcs.get("enqueues")) or 0
    row.counted_enqueues = _whole(rpcs.get("counted_enqueues")) or 0
    row.metadata_rpc_rate = _ratio(row.metadata_rpcs, traced_s)
    if timed := rpcs.get("timed"):
        row.mean_service_us = _ratio(rpcs["service_us"], timed)
        row.max_service_us = rpcs["longest_us"]
        row.mean_queue_us = _ratio(rpcs["queue_us"], timed)


def _by_job(query: str | sql.Composed, values: _Row) -> dict[int, _Row]:
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        names = [column.name for column in cursor.description or ()]
        return {row[0]: dict(zip(names, row, strict=True)) for row in cursor.fetchall()}


def _whole(amount: Any) -> int | None:
    return None if amount is None else min(int(amount), LARGEST_BIGINT)


def _ratio(amount: Any, divisor: Any) -> float | None:
    """Return the quotient; None if a value is unknown or the divisor is 0."""
    return None if amount is None or not divisor else float(amount) / float(divisor)


def _share(part: float, rest: int | None) -> float:
    return part / (part + (rest or 0)) if part else 0.0


_CHECKED = 20  # highest intervals of each job that are compared with traces

# The peak metadata rate: the highest total rate of a job's MDTs between two reads.
# MDTs are read at different times, so rates of overlapping windows are added. A running sum finds
# the time of the peak; its rate is then summed separately, to avoid accumulated rounding errors.
# A read that shows old counters moves operations to the next interval, whose rate is then too high.
# A trace of the same interval shows this: servers perform at most one operation per RPC.
_PEAKS = sql.SQL(
    """
WITH counted AS MATERIALIZED (
    SELECT *, row_number() OVER (PARTITION BY job_id ORDER BY operations / width DESC) AS place
    FROM (
        SELECT job_id, start, "end", extract(epoch FROM "end" - start)::float8 AS width,
            min(w.filesystem_id) AS filesystem_id, sum({metadata})::float8 AS operations
        FROM telemetry_iowindow w LEFT JOIN site_target t ON t.id = w.target_id
        WHERE job_id = ANY(%(jobs)s) AND job_id <> 0 AND target_id <> 0 AND basis <> %(TOTAL)s
            AND "end" > start AND "end" - start <= {gap}
        GROUP BY job_id, start, "end"
    ) intervals
),
windows AS MATERIALIZED (
    SELECT job_id, start, "end", width, least(operations, rpcs) / width AS rate,
        coalesce(rpcs < operations, false) AS is_capped
    FROM counted w LEFT JOIN LATERAL (
        -- Of all clients, because the RPCs of a job may be attributed to others. Windows of 10 s
        -- that overlap the interval partly count in proportion.
        SELECT sum(count * extract(epoch FROM
            least(r.start + interval '10 seconds', w."end") - greatest(r.start, w.start)
        ) / 10) FILTER (WHERE opcode <> %(LDLM_CANCEL)s)::float8 AS rpcs
        FROM telemetry_rpctotal r JOIN site_server s ON s.id = r.server_id
        WHERE s.filesystem_id = w.filesystem_id
            AND r.start > w.start - interval '10 seconds' AND r.start < w."end"
        HAVING NOT bool_or(opcode = %(MDS_BATCH)s)  -- one such RPC may carry many operations
    ) trace ON place <= {checked} AND job_id = ANY(%(traced)s) AND NOT EXISTS (
        SELECT FROM site_server s
        WHERE s.filesystem_id = w.filesystem_id AND s.kind = 'mds' AND NOT coalesce((
            SELECT range_agg(tstzrange(c.start, c."end")) @> tstzrange(w.start, w."end")
            FROM telemetry_coverage c
            WHERE c.source = %(RPC_TRACE)s AND c.source_id = s.id
                AND c.start < w."end" AND c."end" > w.start
        ), false)
    )
),
highest AS (
    SELECT DISTINCT ON (job_id) job_id, at
    FROM (
        SELECT job_id, at, sum(sum(change)) OVER (PARTITION BY job_id ORDER BY at) AS rate
        FROM (
            SELECT job_id, start AS at, rate AS change FROM windows
            UNION ALL
            SELECT job_id, "end", -rate FROM windows
        ) changes
        GROUP BY job_id, at
    ) steps
    ORDER BY job_id, rate DESC, at
)
SELECT job_id, sum(rate) AS rate, max(width) AS width, bool_or(is_capped) AS is_capped
FROM highest JOIN windows USING (job_id)
WHERE start <= at AND at < "end"
GROUP BY job_id
"""
).format(metadata=metadata_operations("w"), gap=MAX_GAP, checked=sql.Literal(_CHECKED))


def _set_peak(row: JobStatistics, peak: dict[str, Any] | None) -> None:
    """Set the peak of a job from a row of `_PEAKS`."""
    # A window longer than the run does not show a peak.
    if peak and row.duration_s is not None and peak["width"] <= row.duration_s:
        row.peak_metadata_rate, row.peak_resolution_s = peak["rate"], peak["width"]
        row.peak_is_capped = peak["is_capped"]
