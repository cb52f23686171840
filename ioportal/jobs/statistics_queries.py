"""SQL of the statistics stage: each query returns figures of a batch of jobs, a row per job.

Definitions: docs/metrics.md. Redundant conditions such as "job_id <> 0" enable partial indexes.
"""

from __future__ import annotations

from psycopg import sql

from collectors.lustre import opcodes
from collectors.tables import METADATA_OPERATIONS
from ioportal.jobs.analysis import quality
from ioportal.jobs.expressions import LATEST_END
from ioportal.site.models import Target
from ioportal.telemetry.models import Coverage, IoWindow, Principal
from ioportal.telemetry.sums import metadata_increase, metadata_operations, timed_operations

STARTUP_SHARE = 0.1  # of the run

PARAMETERS = {
    **{kind.name: kind.value for kind in Principal},
    **{basis.name: basis.value for basis in IoWindow.Basis},
    "JOB_STATS": Coverage.Source.JOB_STATS.value,
    "RPC_TRACE": Coverage.Source.RPC_TRACE.value,
    "EXPORTS": Coverage.Source.EXPORTS.value,
    "startup_share": STARTUP_SHARE,
    "contradiction": quality.CONTRADICTION,
    "min_not_sent": quality.MIN_NOT_SENT,
    "good_covered": quality.GOOD_COVERED,
    "LDLM_ENQUEUE": opcodes.LDLM_ENQUEUE,
    "LDLM_CANCEL": opcodes.LDLM_CANCEL,
    "MDS_BATCH": opcodes.MDS_BATCH,
}

# Maximum time between two reads of a target, as `Target.poll_gap`.
MAX_GAP = sql.SQL("greatest(%(gap)s, t.job_cleanup_interval)")

# Runs of the jobs. A run without a recorded end extends to the latest data of the cluster's
# filesystems, at most to `LATEST_END`: its end may never be recorded.
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

RUNS = _RUNS + 'SELECT job_id, start, "end" FROM runs'

_WITH_TIME, _TIME = timed_operations("w")
IO_TOTALS = sql.SQL(
    _RUNS
    + """
SELECT w.job_id,
    {kinds},
    {means},
    sum({time}) FILTER (WHERE w.target_id <> 0) AS operations_us,
    sum({with_time}) FILTER (WHERE w.target_id <> 0) AS operations_with_time,
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
    count(*) FILTER (WHERE w.basis = %(RESET)s AND w.target_id <> 0) AS resets,
    count(*) FILTER (WHERE w.basis = %(RESET)s AND w.target_id = 0) AS ost_resets
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
    means=sql.SQL(", ").join(
        sql.SQL(
            "sum({0}) FILTER (WHERE w.target_id <> 0) "
            "/ nullif(sum({1}) FILTER (WHERE w.target_id <> 0 AND {0} IS NOT NULL), 0) AS {2}"
        ).format(
            sql.Identifier("w", f"{name}_us"),
            sql.Identifier("w", name),
            sql.Identifier(f"mean_{name}_us"),
        )
        for name in METADATA_OPERATIONS
    ),
    with_time=_WITH_TIME,
    time=_TIME,
    metadata=metadata_operations("w"),
    gap=MAX_GAP,
)

# Traces arrive earlier than periodic reads of counters. For comparisons with counters, RPCs are
# counted up to the latest read of all MDTs in use.
RPC_TOTALS = sql.SQL("""
WITH latest_reads AS (
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
    SELECT filesystem_id, min("end") AS until FROM latest_reads WHERE "end" >= last - gap GROUP BY 1
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
""").format(gap=MAX_GAP)

# Seconds of a run covered by RPC traces of any MDS.
TRACED = (
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

# Per job: number of targets (MDTs or OSTs) of its filesystems, and mean coverage of its run by
# their reads or polls. Its filesystems are those with I/O windows of the job, otherwise all of its
# cluster. With an outer join, a filesystem without targets counts as not covered. A read covers the
# interval since the previous read; a row of polls spans at most a day.
_COVERAGE = sql.SQL(
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
    {join} site_target t ON t.filesystem_id = f.filesystem_id AND t.kind = {kind}
    LEFT JOIN reads ON reads.target_id = t.id
        AND reads.start < runs."end" AND reads."end" > runs.start
    GROUP BY runs.job_id, t.id
) targets
GROUP BY job_id
"""
)
MDT_COVERAGE, OST_COVERAGE = (
    _COVERAGE.format(gap=MAX_GAP, kind=sql.Literal(kind.value), join=sql.SQL(join))
    for kind, join in ((Target.Kind.MDT, "JOIN"), (Target.Kind.OST, "LEFT JOIN"))
)

# Job ids in telemetry by job.
JOB_IDS = "SELECT source_job_id, job_id FROM jobs_namedjob WHERE job_id = ANY(%(jobs)s)"

# Ambiguous operations and RPCs: their job ids match several jobs, or several jobs share the node.
# All joins are hash joins (`planner.settings`).
AMBIGUOUS = (
    _RUNS
    + sql.SQL(""",
links AS MATERIALIZED (
    SELECT n.source_job_id, runs.job_id, runs.start, runs."end"
    FROM unnest(%(source_job_ids)s::integer[], %(linked_jobs)s::bigint[])
        AS n (source_job_id, job_id)
    JOIN runs USING (job_id)
),
operations AS (
    SELECT n.job_id, sum({metadata})::float8 AS operations
    FROM telemetry_iowindow w JOIN links n USING (source_job_id)
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
        FROM windows w JOIN links n ON n.source_job_id = w.source_job_id
            AND w.start >= n.start - interval '10 seconds' AND w.start < n."end"
        WHERE w.nid_id = 0
    ) ambiguous
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

# RPCs that claimed a job and were contradicted, and RPCs of a job's nodes that claimed another job.
# Counters with a user id are separate, so forged ids do not change them: these claims are left out.
CONTRADICTED = (
    _RUNS
    + """,
links AS MATERIALIZED (
    SELECT n.source_job_id, runs.job_id, runs.start, runs."end" + interval '1 hour' AS "end"
    FROM unnest(%(source_job_ids)s::integer[], %(linked_jobs)s::bigint[])
        AS n (source_job_id, job_id)
    JOIN runs USING (job_id)
    JOIN site_sourcejobid s ON s.id = n.source_job_id AND s.uid IS NULL
),
claims AS (
    SELECT n.job_id, sum(w.count)::float8 AS rpcs
    FROM telemetry_attributedrpc w JOIN links n USING (source_job_id)
    WHERE w.source_job_id <> 0 AND w.kind <> 2
        AND (w.kind = %(CONTRADICTED)s OR w.kind = %(JOB)s AND w.job_id <> n.job_id)
        AND w.start >= n.start - interval '10 seconds' AND w.start < n."end"
    GROUP BY n.job_id
),
claiming AS (
    SELECT job_id, sum(count)::float8 AS rpcs
    FROM telemetry_attributedrpc
    WHERE job_id <> 0 AND job_id = ANY(%(jobs)s) AND source_job_id <> 0
    GROUP BY job_id
)
SELECT runs.job_id, coalesce(claims.rpcs, 0) AS claims, coalesce(claiming.rpcs, 0) AS claiming
FROM runs
LEFT JOIN claims USING (job_id)
LEFT JOIN claiming USING (job_id)
"""
)

# Operations counted for a job that its nodes did not send, where the exports of the MDT were polled
# during the run: another client used its id. Clients that may send for any job explain them, too:
# those without a registered node, forwarding nodes and, while another job runs on one of its nodes,
# nodes of several jobs. A job id may name its job some minutes before the run.
NOT_SENT = sql.SQL(
    _RUNS
    + """,
counted AS (
    SELECT w.job_id, w.target_id, least(runs.start, min(w.start)) AS start, max(w."end") AS "end",
        sum({operations})::float8 AS operations
    FROM telemetry_iowindow w
    JOIN runs USING (job_id)
    JOIN site_sourcejobid s ON s.id = w.source_job_id AND s.uid IS NULL
    WHERE w.job_id = ANY(%(jobs)s) AND w.job_id <> 0 AND w.target_id <> 0
    GROUP BY 1, 2, runs.start
),
sent AS (
    SELECT job_id, target_id, sum(metadata_operations)::float8 AS sent
    FROM telemetry_hostwindow
    WHERE job_id = ANY(%(jobs)s) AND job_id <> 0
    GROUP BY 1, 2
),
suspicious AS MATERIALIZED (
    SELECT counted.*, coalesce(sent, 0) AS sent
    FROM counted LEFT JOIN sent USING (job_id, target_id)
    WHERE operations - coalesce(sent, 0) >= %(min_not_sent)s AND (
        SELECT sum(extract(epoch FROM least(c."end", counted."end")
            - greatest(c.start, counted.start)))
        FROM telemetry_coverage c
        WHERE c.source = %(EXPORTS)s AND c.source_id = counted.target_id
            AND c.start < counted."end" AND c."end" > counted.start
    ) >= %(good_covered)s * extract(epoch FROM counted."end" - counted.start)
),
shared AS MATERIALIZED (
    SELECT s.job_id, range_agg(tstzrange(other.started_at, other.ended_at, '[]')) AS times
    FROM (SELECT job_id, min(start) AS start, max("end") AS "end" FROM suspicious GROUP BY 1) s
    JOIN jobs_job other ON other.id <> s.job_id AND other.started_at IS NOT NULL
        AND tstzrange(other.started_at, other.ended_at)
            && tstzrange(s.start - %(gap)s, s."end" + %(gap)s)  -- in the same poll interval
    WHERE EXISTS (
        SELECT FROM jobs_allocation a JOIN jobs_allocation b USING (node_id)
        WHERE a.job_id = s.job_id AND b.job_id = other.id
    )
    GROUP BY 1
),
explained AS (
    SELECT job_id, operations, sent + coalesce((
        SELECT sum(w.metadata_operations)::float8
        FROM telemetry_hostwindow w
        LEFT JOIN site_nid i ON i.id = w.nid_id LEFT JOIN site_node n ON n.id = i.node_id
        WHERE w.target_id = suspicious.target_id AND w.job_id = 0
            AND CASE w.kind
                WHEN %(HOST)s THEN n.forwards
                WHEN %(JOB)s THEN tstzrange(w.start, w."end", '[]') && shared.times
                ELSE true
            END
            AND w."end" > suspicious.start AND w.start < suspicious."end"
            AND w."end" < suspicious."end" + interval '1 day'
    ), 0) AS at_most
    FROM suspicious LEFT JOIN shared USING (job_id)
)
SELECT job_id, sum(operations - at_most) AS operations
FROM explained
WHERE operations > %(contradiction)s * at_most AND operations - at_most >= %(min_not_sent)s
GROUP BY job_id
"""
).format(operations=metadata_operations("w"))

# Largest share of a job in the operations of any MDT during its activity there. Totals that fall
# have restarted from zero.
TARGET_SHARES = sql.SQL(
    """
WITH spans AS MATERIALIZED (
    SELECT job_id, target_id, min(start) AS start, max("end") AS "end",
        sum({job_operations})::float8 AS operations
    FROM telemetry_iowindow w
    WHERE job_id = ANY(%(jobs)s) AND job_id <> 0 AND target_id <> 0 AND basis <> %(TOTAL)s
    GROUP BY job_id, target_id
),
running AS MATERIALIZED (
    SELECT target_id, taken_at, sum(operations) OVER (
        PARTITION BY target_id ORDER BY taken_at
    ) AS total
    FROM (
        SELECT t.target_id, t.taken_at, coalesce({increase}, {target_operations}) AS operations
        FROM telemetry_targetsnapshot t
        WHERE t.target_id = ANY(ARRAY(SELECT target_id FROM spans))
            AND t.taken_at >= (SELECT min(start) FROM spans) - interval '1 hour'
            AND t.taken_at <= (SELECT max("end") FROM spans)
        WINDOW earlier AS (PARTITION BY t.target_id ORDER BY t.taken_at)
    ) increases
),
counted AS (
    SELECT spans.job_id, spans.operations, later.total - earlier.total AS total
    FROM spans
    JOIN running earlier
        ON earlier.target_id = spans.target_id AND earlier.taken_at = spans.start
    JOIN running later ON later.target_id = spans.target_id AND later.taken_at = spans."end"
    UNION ALL
    -- Polls of an agent, if they are continuous.
    SELECT spans.job_id, spans.operations, polled.total
    FROM spans
    CROSS JOIN LATERAL (
        SELECT sum({target_operations}) AS total FROM telemetry_targetdelta t
        WHERE t.target_id = spans.target_id
            AND t.start < spans."end" AND t."end" > spans.start
            AND t."end" < spans."end" + interval '1 hour'
        HAVING min(t.start) <= spans.start AND max(t."end") >= spans."end"
            AND sum(t."end" - t.start) = max(t."end") - min(t.start)
    ) polled
)
SELECT job_id, max(least(operations / total, 1)) AS share
FROM counted
WHERE total > 0
GROUP BY job_id
"""
).format(
    job_operations=metadata_operations("w"),
    target_operations=metadata_operations("t"),
    increase=metadata_increase("t"),
)
