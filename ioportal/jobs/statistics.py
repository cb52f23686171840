"""One row of figures per job, from its windows and its record: the statistics stage.

Each query answers for a batch of jobs at once. Definitions: docs/metrics.md, written from
`ioportal.analysis.metrics`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from psycopg import sql

from collectors.lustre import opcodes
from collectors.tables import METADATA_OPERATIONS
from ioportal.analysis import quality
from ioportal.jobs import locks
from ioportal.jobs.models import DirtyEvidence, DirtyStatistics, Job, JobStatistics
from ioportal.jobs.runs import LATEST_END
from ioportal.site.models import Target
from ioportal.telemetry import levels, planner, retention
from ioportal.telemetry.models import (
    LARGEST_BIGINT,
    Coverage,
    IoWindow,
    Principal,
    RetentionLog,
)
from ioportal.telemetry.sums import metadata_operations

_STATISTICS_LOCK = 7_304  # any number that no other advisory lock uses
_STARTUP_SHARE = 0.1  # of the run

_CONSTANTS = {
    **{kind.name: kind.value for kind in Principal},
    **{basis.name: basis.value for basis in IoWindow.Basis},
    "JOB_STATS": Coverage.Source.JOB_STATS.value,
    "MD_STATS": Coverage.Source.MD_STATS.value,
    "RPC_TRACE": Coverage.Source.RPC_TRACE.value,
    "startup_share": _STARTUP_SHARE,
    "LDLM_ENQUEUE": opcodes.LDLM_ENQUEUE,
}


# (Where a query says "not 0" besides, that is for the sake of an index which holds no zeros.)

# How far apart two reads of a target may be; as `Target.poll_gap`.
_GAP = sql.SQL("greatest(%(gap)s, t.job_cleanup_interval)")

# The jobs asked for, each with the end of its run; one that runs still is known up to the last
# record of its cluster's filesystems, but not past its time limit: its end may never be recorded.
_RUNS = (
    """
WITH sources AS (
    SELECT %(RPC_TRACE)s AS source, id, filesystem_id FROM site_server
    UNION ALL
    SELECT %(JOB_STATS)s, id, filesystem_id FROM site_target
),
reached AS MATERIALIZED (
    SELECT f.cluster_id, max(latest."end") AS "end"
    FROM sources s
    JOIN site_filesystem_clusters f ON f.filesystem_id = s.filesystem_id
    CROSS JOIN LATERAL (
        SELECT c."end" FROM telemetry_coverage c
        WHERE c.source = s.source AND c.source_id = s.id AND c.start <= %(now)s
        ORDER BY c.start DESC LIMIT 1
    ) latest
    GROUP BY f.cluster_id
),
runs AS MATERIALIZED (
    SELECT j.id AS job_id, j.cluster_id, j.started_at AS start,
        coalesce(j.ended_at, least(greatest(j.started_at, reached."end"), """
    + LATEST_END
    + """)) AS "end"
    FROM jobs_job j LEFT JOIN reached ON reached.cluster_id = j.cluster_id
    WHERE j.id = ANY(%(jobs)s) AND j.started_at IS NOT NULL
)
"""
)

_IO_TOTALS = sql.SQL(
    _RUNS
    + """
SELECT w.job_id,
    {kinds},
    sum(w.read_bytes) AS read_bytes, sum(w.write_bytes) AS write_bytes,
    sum(w.read) AS reads, sum(w.write) AS writes,
    sum({metadata}) FILTER (WHERE w.target_id <> 0) AS metadata_operations,
    sum({metadata}) FILTER (
        WHERE w.target_id <> 0 AND w.basis <> %(TOTAL)s AND w."end" - w.start <= {gap}
    ) AS timed_operations,
    sum({metadata}) FILTER (
        WHERE w.target_id <> 0 AND w.basis <> %(TOTAL)s
            AND w."end" <= runs.start + %(startup_share)s * (runs."end" - runs.start)
    ) AS startup_operations,
    max(w."end" - w.start) FILTER (WHERE w.target_id <> 0) AS widest,
    coalesce(bool_or(w.target_id = 0), false) AS is_counted_by_osts,
    count(*) FILTER (WHERE w.basis = %(RESET)s) AS resets
FROM telemetry_iowindow w JOIN runs USING (job_id) LEFT JOIN site_target t ON t.id = w.target_id
WHERE w.job_id = ANY(%(jobs)s) AND w.job_id <> 0
GROUP BY w.job_id
"""
).format(
    kinds=sql.SQL(", ").join(
        sql.SQL("sum({}) FILTER (WHERE w.target_id <> 0) AS {}").format(
            sql.Identifier("w", name), sql.Identifier(f"count_{name}")
        )
        for name in METADATA_OPERATIONS
    ),
    metadata=metadata_operations("w"),
    gap=_GAP,
)

# MDTs are read at different moments: their rates are added where their windows overlap. A running
# sum finds the moment of the highest; its rate is added up anew, without the sum's rounding errors.
_PEAKS = sql.SQL(
    """
WITH windows AS MATERIALIZED (
    SELECT job_id, start, "end", width, operations / width AS rate
    FROM (
        SELECT job_id, start, "end", extract(epoch FROM "end" - start)::float8 AS width,
            sum({metadata})::float8 AS operations
        FROM telemetry_iowindow w LEFT JOIN site_target t ON t.id = w.target_id
        WHERE job_id = ANY(%(jobs)s) AND job_id <> 0 AND target_id <> 0 AND basis <> %(TOTAL)s
            AND "end" > start AND "end" - start <= {gap}
        GROUP BY job_id, start, "end"
    ) counted
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
SELECT job_id, sum(rate) AS rate, max(width) AS width
FROM highest JOIN windows USING (job_id)
WHERE start <= at AND at < "end"
GROUP BY job_id
"""
).format(metadata=metadata_operations("w"), gap=_GAP)

# A trace comes earlier than counters that are read now and then: what is held beside these are the
# RPCs before the newest read, of the MDTs that are still read.
_RPC_TOTALS = sql.SQL("""
WITH newest AS (
    SELECT t.filesystem_id, {gap} AS gap, read."end",
        max(read."end") OVER (PARTITION BY t.filesystem_id) AS last
    FROM site_target t
    CROSS JOIN LATERAL (
        SELECT c."end" FROM telemetry_coverage c
        WHERE c.source = %(JOB_STATS)s AND c.source_id = t.id AND c.start <= %(now)s
        ORDER BY c.start DESC LIMIT 1
    ) read
    WHERE t.kind = 'mdt'
),
counted AS MATERIALIZED (
    SELECT filesystem_id, min("end") AS until FROM newest WHERE "end" >= last - gap GROUP BY 1
)
SELECT w.job_id, sum(w.count) AS rpcs, sum(w.timed) AS timed,
    sum(w.count) FILTER (WHERE w.opcode = %(LDLM_ENQUEUE)s) AS enqueues,
    sum(w.count) FILTER (
        WHERE w.opcode = %(LDLM_ENQUEUE)s AND w.start <= counted.until - interval '10 seconds'
    ) AS counted_enqueues,
    sum(w.service_us_sum) AS service_us, max(w.service_us_max) AS longest_us,
    sum(w.total_us_sum) - sum(w.service_us_sum) AS queue_us
FROM telemetry_attributedrpc w JOIN site_server s ON s.id = w.server_id AND s.kind = 'mds'
LEFT JOIN counted ON counted.filesystem_id = s.filesystem_id
WHERE w.job_id = ANY(%(jobs)s) AND w.job_id <> 0
GROUP BY w.job_id
""").format(gap=_GAP)

_TRACED = (
    _RUNS
    + """
SELECT job_id, sum(extract(epoch FROM upper(r) - lower(r)))::float8 AS traced_s
FROM (
    SELECT runs.job_id, unnest(range_agg(
        tstzrange(greatest(c.start, runs.start), least(c."end", runs."end"))
    )) AS r
    FROM runs
    JOIN site_filesystem_clusters f ON f.cluster_id = runs.cluster_id
    JOIN site_server s ON s.filesystem_id = f.filesystem_id AND s.kind = 'mds'
    JOIN telemetry_coverage c ON c.source = %(RPC_TRACE)s AND c.source_id = s.id
        AND c.start < runs."end" AND c."end" > runs.start
    GROUP BY runs.job_id
) traced
GROUP BY job_id
"""
)

# Per job: how many MDTs, or OSTs, its filesystems have, and for how long the reads of these, or the
# polls of an agent, observed its run: their mean. Its filesystems are those where anything of it
# was counted; if that is none, all that its cluster mounts. One that has none of the targets counts
# as unobserved where `joined` is an outer join. A read is an instant, that observes what lies
# between it and the one before; a row of polls goes over a day at most.
_COVERED_BY = sql.SQL(
    _RUNS
    + """,
rows AS MATERIALIZED (
    SELECT t.id AS target_id, {gap} AS gap, c.start, c."end", c.start = c."end" AS is_read,
        lag(c.start) OVER earlier AS previous, lag(c.start = c."end") OVER earlier AS after_read
    FROM site_target t JOIN telemetry_coverage c ON c.source_id = t.id
    WHERE c.source = %(JOB_STATS)s AND t.kind = {kind}
        AND c.start >= (SELECT min(start) FROM runs) - greatest({gap}, interval '1 day')
        AND c.start <= (SELECT max("end") FROM runs) + {gap}
    WINDOW earlier AS (PARTITION BY c.source_id ORDER BY c.start, c."end")
),
reads AS MATERIALIZED (
    SELECT target_id, CASE WHEN is_read THEN previous ELSE start END AS start, "end"
    FROM rows
    WHERE NOT is_read OR after_read AND start - previous <= gap
),
counted AS MATERIALIZED (
    SELECT job_id, filesystem_id FROM telemetry_iowindow
    WHERE job_id = ANY(%(jobs)s) AND job_id <> 0
    GROUP BY 1, 2
),
on_filesystems AS MATERIALIZED (
    SELECT job_id, filesystem_id FROM counted
    UNION ALL
    SELECT runs.job_id, f.filesystem_id
    FROM runs JOIN site_filesystem_clusters f USING (cluster_id)
    WHERE runs.job_id NOT IN (SELECT job_id FROM counted)
)
SELECT job_id, avg(covered_s)::float8 AS covered_s, count(target_id) AS targets
FROM (
    SELECT runs.job_id, t.id AS target_id, coalesce(sum(extract(epoch FROM
        least(reads."end", runs."end") - greatest(reads.start, runs.start)
    )) FILTER (WHERE reads.target_id IS NOT NULL), 0) AS covered_s
    FROM runs
    JOIN on_filesystems f USING (job_id)
    {joined} site_target t ON t.filesystem_id = f.filesystem_id AND t.kind = {kind}
    LEFT JOIN reads ON reads.target_id = t.id
        AND reads.start < runs."end" AND reads."end" > runs.start
    GROUP BY runs.job_id, t.id
) targets
GROUP BY job_id
"""
)
_COVERED, _OSTS_COVERED = (
    _COVERED_BY.format(gap=_GAP, kind=sql.Literal(kind.value), joined=sql.SQL(joined))
    for kind, joined in ((Target.Kind.MDT, "JOIN"), (Target.Kind.OST, "LEFT JOIN"))
)

# The ids by which telemetry names the jobs.
_NAMED = "SELECT source_job_id, job_id FROM jobs_namedjob WHERE job_id = ANY(%(jobs)s)"

# What may be the job's or another's: by ids that name several jobs, and on nodes that several hold.
# Every join can be hashed, and is (`planner.settings`).
_AMBIGUOUS = (
    _RUNS
    + sql.SQL(""",
named AS MATERIALIZED (
    SELECT n.source_job_id, runs.job_id, runs.start, runs."end"
    FROM unnest(%(named_ids)s::integer[], %(named_jobs)s::bigint[]) AS n (source_job_id, job_id)
    JOIN runs USING (job_id)
),
operations AS (
    SELECT n.job_id, sum({metadata})::float8 AS operations
    FROM telemetry_iowindow w JOIN named n USING (source_job_id)
    WHERE w.kind = %(AMBIGUOUS)s AND w.start < %(last)s
        AND w.start < n."end" AND w."end" > n.start
    GROUP BY n.job_id
),
windows AS MATERIALIZED (
    SELECT start, nid_id, source_job_id, count FROM telemetry_attributedrpc
    WHERE kind = %(AMBIGUOUS)s AND start >= %(first)s - interval '10 seconds' AND start < %(last)s
),
rpcs AS (
    SELECT job_id, sum(count)::float8 AS rpcs
    FROM (
        SELECT runs.job_id, w.count
        FROM windows w
        JOIN site_nid i ON i.id = w.nid_id
        JOIN jobs_allocation a ON a.node_id = i.node_id AND a.job_id = ANY(%(jobs)s)
        JOIN runs ON runs.job_id = a.job_id
            AND w.start >= runs.start - interval '10 seconds' AND w.start < runs."end"
        UNION ALL
        SELECT n.job_id, w.count
        FROM windows w JOIN named n ON n.source_job_id = w.source_job_id
            AND w.start >= n.start - interval '10 seconds' AND w.start < n."end"
        WHERE w.nid_id = 0
    ) anothers
    GROUP BY job_id
)
SELECT runs.job_id, coalesce(operations, 0) AS operations, coalesce(rpcs, 0) AS rpcs
FROM runs
LEFT JOIN operations USING (job_id)
LEFT JOIN rpcs USING (job_id)
""")
    .format(metadata=metadata_operations("w"))
    .as_string()
)

_TARGET_SHARES = sql.SQL(
    """
SELECT job_id, max(least(operations / counted.total, 1)) AS share
FROM (
    SELECT job_id, target_id, min(start) AS start, max("end") AS "end",
        sum({of_job})::float8 AS operations
    FROM telemetry_iowindow w
    WHERE job_id = ANY(%(jobs)s) AND job_id <> 0 AND target_id <> 0 AND basis <> %(TOTAL)s
    GROUP BY job_id, target_id
) spans
JOIN LATERAL (
    SELECT later.total - earlier.total AS total
    FROM (
        SELECT {of_target} AS total FROM telemetry_targetsnapshot t
        WHERE t.target_id = spans.target_id AND t.taken_at = spans.start
    ) earlier
    CROSS JOIN (
        SELECT {of_target} AS total FROM telemetry_targetsnapshot t
        WHERE t.target_id = spans.target_id AND t.taken_at = spans."end"
    ) later
    UNION ALL
    -- An agent's polls, where they go on all the while.
    SELECT sum({of_target}) AS total FROM telemetry_targetdelta t
    WHERE t.target_id = spans.target_id
        AND t.start < spans."end" AND t."end" > spans.start
        AND t."end" < spans."end" + interval '1 hour'
    HAVING min(t.start) <= spans.start AND max(t."end") >= spans."end"
        AND sum(t."end" - t.start) = max(t."end") - min(t.start)
) counted ON counted.total > 0
GROUP BY job_id
"""
).format(of_job=metadata_operations("w"), of_target=metadata_operations("t"))


def refresh_statistics(limit: int = 500) -> int:
    """Claim jobs whose windows or record changed and compute their figures; return how many.

    The caller goes on until it is 0: what is left then are jobs that run and were computed not
    long ago. Safe to run twice and beside itself.
    """
    with transaction.atomic():
        # One stage at a time: of two that compute one job's figures, the earlier might win.
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_STATISTICS_LOCK])
        running = JobStatistics.objects.filter(
            job__ended_at=None, computed_at__gt=datetime.now(UTC) - settings.STATISTICS_INTERVAL
        )
        pending = DirtyStatistics.objects.exclude(job_id__in=running.values("job_id"))
        claimed = {row.job_id for row in pending.next(limit)}
        DirtyStatistics.objects.filter(job_id__in=claimed).delete()
        jobs = list(Job.objects.filter(pk__in=claimed, started_at__isnull=False).order_by("pk"))
        figures = _Figures.of(jobs)
        rows = [figures.statistics(job) for job in jobs]
        _keep_what_windows_told(jobs, rows)
        JobStatistics.objects.bulk_create(
            rows,
            update_conflicts=True,
            unique_fields=["job"],
            update_fields=_COMPUTED,
        )
        _tell_jobs(rows)
        DirtyEvidence.objects.mark(row.job_id for row in rows)
        return len(claimed)


def _tell_jobs(rows: list[JobStatistics]) -> None:
    """Write the quality of their data into the jobs themselves: last, since loading waits."""
    locks.accounting()  # two that change the same jobs might wait for each other
    for quality_of_some in JobStatistics.Quality:
        judged = [row.job_id for row in rows if row.quality == quality_of_some]
        others = Job.objects.filter(pk__in=judged).exclude(quality=quality_of_some)
        others.update(quality=quality_of_some)


_COMPUTED = [
    field.name
    for field in JobStatistics._meta.concrete_fields  # noqa: SLF001  (documented meta API)
    if field.name != "job"
]

# Figures by the level that they are computed from.
_OF_RECORD = ("computed_at", "duration_s", "node_count", "cpu_efficiency")
_OF_TRACES = (
    "metadata_rpcs",
    "lock_enqueues",
    "counted_enqueues",
    "metadata_rpc_rate",
    "mean_service_us",
    "max_service_us",
    "mean_queue_us",
)
_OF_COUNTERS = [name for name in _COMPUTED if name not in {*_OF_RECORD, *_OF_TRACES}]

_Row = dict[str, Any]


def _keep_what_windows_told(jobs: list[Job], rows: list[JobStatistics]) -> None:
    """Leave figures as they were where windows of the run that they came from are gone."""
    if not RetentionLog.objects.exists():
        return
    always = retention.ALWAYS
    before = JobStatistics.objects.in_bulk([job.pk for job in jobs])
    for level, names in (
        (levels.ATTRIBUTED_RPCS, _OF_TRACES),
        (levels.IO_WINDOWS, _OF_COUNTERS),
    ):
        gone = retention.dropped([level], *always)
        for job, row in zip(jobs, rows, strict=True):
            start, end = job.started_at or always.end, job.ended_at or always.end
            if (known := before.get(job.pk)) and any(
                one.start < end and one.end > start for one in gone
            ):
                for name in names:
                    setattr(row, name, getattr(known, name))


@dataclass(frozen=True)
class _Figures:
    """What each query says, by job."""

    now: datetime
    runs: dict[int, _Row]
    io: dict[int, _Row]
    peaks: dict[int, _Row]
    shares: dict[int, _Row]
    rpcs: dict[int, _Row]
    traced: dict[int, _Row]
    covered: dict[int, _Row]
    osts: dict[int, _Row]
    ambiguous: dict[int, _Row]

    @classmethod
    def of(cls, jobs: list[Job]) -> _Figures:
        now = datetime.now(UTC)
        values = _CONSTANTS | {
            "jobs": [job.pk for job in jobs],
            "gap": settings.POLL_GAP,
            "now": now,
        }
        return cls(
            now,
            runs=_by_job(_RUNS + 'SELECT job_id, start, "end" FROM runs', values),
            io=_by_job(_IO_TOTALS, values),
            peaks=_by_job(_PEAKS, values),
            shares=_by_job(_TARGET_SHARES, values),
            rpcs=_by_job(_RPC_TOTALS, values),
            traced=_by_job(_TRACED, values),
            covered=_by_job(_COVERED, values),
            osts=_by_job(_OSTS_COVERED, values),
            ambiguous=_ambiguous(jobs, values),
        )

    def statistics(self, job: Job) -> JobStatistics:
        """Return a job's row."""
        run = self.runs[job.pk]
        duration_s = (run["end"] - run["start"]).total_seconds()
        nodes = job.node_count
        row = JobStatistics(
            job=job,
            computed_at=self.now,
            duration_s=duration_s,
            node_count=nodes,
            cpu_efficiency=_ratio(job.cpu_s, job.core_count * duration_s) if job.ended_at else None,
        )
        covered_s = self.covered.get(job.pk, {}).get("covered_s") or 0.0
        row.covered_share = min(1.0, covered_s / duration_s) if duration_s else 0.0
        osts = self.osts.get(job.pk, {"targets": 0, "covered_s": 0.0})
        io = self.io.get(job.pk)
        row.bytes_quality, row.bytes_reasons = quality.judge_bytes(
            osts["targets"],
            min(1.0, osts["covered_s"] / duration_s) if duration_s else 0.0,
            is_counted=bool(io and io["is_counted_by_osts"]),
        )
        if io:
            _set_io(row, io, covered_s, timedelta(seconds=duration_s))
        if io and row.bytes_quality:
            _set_bytes(row, io)
        # What was counted over more than the run is no peak of it.
        if (peak := self.peaks.get(job.pk)) and peak["width"] <= duration_s:
            row.peak_metadata_rate, row.peak_resolution_s = peak["rate"], peak["width"]
        row.largest_target_share = self.shares.get(job.pk, {}).get("share")
        if traced := self.traced.get(job.pk):
            _set_rpcs(row, self.rpcs.get(job.pk, {}), traced["traced_s"])
        ambiguous = self.ambiguous[job.pk]
        row.ambiguous_share = max(
            _share(ambiguous["operations"], row.metadata_operations),
            _share(ambiguous["rpcs"], row.metadata_rpcs),
        )
        judged = quality.judge(row.covered_share, row.ambiguous_share, row.resets)
        row.quality, row.quality_reasons = judged.grade, list(judged.reasons)
        return row


def _ambiguous(jobs: list[Job], values: _Row) -> dict[int, _Row]:
    if not jobs:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_NAMED, values)
        named = cursor.fetchall()
    values |= {
        "named_ids": [source_job_id for source_job_id, _ in named],
        "named_jobs": [job_id for _, job_id in named],
        "first": min(job.started_at for job in jobs if job.started_at),
        "last": max(job.ended_at or values["now"] for job in jobs),
    }
    with planner.settings(enable_nestloop="off"):
        return _by_job(_AMBIGUOUS, values)


def _set_io(row: JobStatistics, io: _Row, covered_s: float, duration: timedelta) -> None:
    """Set what the MDTs' job_stats tell."""
    nodes = row.node_count
    for kind in METADATA_OPERATIONS:
        setattr(row, f"count_{kind}", _whole(io[f"count_{kind}"]))
    row.metadata_operations = operations = _whole(io["metadata_operations"])
    row.opens, row.closes = _whole(io["count_open"]), _whole(io["count_close"])
    row.open_close_ratio = _ratio(row.opens, row.closes)
    row.metadata_operations_per_node = _ratio(operations, nodes)
    row.metadata_rate = _ratio(_whole(io["timed_operations"]), covered_s)
    if io["widest"] is not None and io["widest"] <= _STARTUP_SHARE * duration:
        row.startup_share = _ratio(io["startup_operations"] or 0, operations)
    row.resets = io["resets"]


def _set_bytes(row: JobStatistics, io: _Row) -> None:
    """Set what the OSTs' job_stats tell, with small files on MDTs."""
    row.read_bytes, row.write_bytes = _whole(io["read_bytes"]), _whole(io["write_bytes"])
    row.read_bytes_per_node = _ratio(row.read_bytes, row.node_count)
    row.write_bytes_per_node = _ratio(row.write_bytes, row.node_count)
    row.mean_read_bytes = _ratio(row.read_bytes, io["reads"])
    row.mean_write_bytes = _ratio(row.write_bytes, io["writes"])


def _set_rpcs(row: JobStatistics, rpcs: _Row, traced_s: float) -> None:
    """Set what a trace tells; a trace without RPCs of the job tells that there were none."""
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


def _ratio(amount: Any, of: Any) -> float | None:
    """Return amount / of; None where one is not known or there is nothing to divide by."""
    return None if amount is None or not of else float(amount) / float(of)


def _share(part: float, rest: int | None) -> float:
    return part / (part + (rest or 0)) if part else 0.0
