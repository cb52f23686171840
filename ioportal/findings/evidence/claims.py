"""Load that only job ids claim: any job on a node that several owners share can send another's id.

A user id in the job id, which the client's kernel adds, proves the owner.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl
from django.db import connection
from psycopg import sql

from ioportal.findings.evidence import group_evidence
from ioportal.rules import capacity
from ioportal.rules.evidence import DAY
from ioportal.rules.rule import GROUPS, HARM_SHARE, Subject
from ioportal.telemetry.models import IoWindow, Principal
from ioportal.telemetry.sums import metadata_operations

if TYPE_CHECKING:
    from ioportal.findings.evidence.subject_evidence import Evidence

# In the seconds in which jobs of other owners were on its nodes, these can have sent all that the
# capacity allows. What exports count for nodes that the job alone held is its own.
_PROVEN = sql.SQL("""
WITH asked AS MATERIALIZED (
    SELECT j.id, j.owner, j.started_at, coalesce(j.ended_at, 'infinity') AS ended_at,
        a.capacity_per_s
    FROM unnest(%(jobs)s::bigint[], %(capacities)s::float8[]) AS a (id, capacity_per_s)
    JOIN jobs_job j USING (id) WHERE j.started_at IS NOT NULL
),
active AS MATERIALIZED (
    SELECT id, owner, started_at, coalesce(ended_at, 'infinity') AS ended_at FROM jobs_job
    WHERE started_at IS NOT NULL AND tstzrange(started_at, ended_at)
        && (SELECT tstzrange(min(started_at), max(ended_at)) FROM asked)
),
shared AS MATERIALIZED (
    SELECT j.id, j.owner, j.started_at, j.capacity_per_s, range_agg(tstzrange(
        greatest(j.started_at, other.started_at), least(j.ended_at, other.ended_at)
    )) AS times
    FROM asked j
    JOIN jobs_allocation a ON a.job_id = j.id
    JOIN jobs_allocation b ON b.node_id = a.node_id AND b.job_id <> a.job_id
    JOIN active other ON other.id = b.job_id
    WHERE (other.owner <> j.owner OR other.owner = '')
        AND other.started_at < j.ended_at AND other.ended_at > j.started_at
    GROUP BY 1, 2, 3, 4
),
windows AS (
    SELECT shared.id, {operations}::float8 AS operations,
        CASE WHEN u.uid IS NULL THEN least({operations}::float8, capacity_per_s * (
            SELECT coalesce(sum(extract(epoch FROM upper(part) - lower(part))::float8), 0)
            FROM unnest(times * tstzmultirange(tstzrange(
                least(CASE w.basis WHEN %(TOTAL)s THEN started_at ELSE w.start END, w."end"),
                w."end"
            ))) AS parts (part)
        )) ELSE 0 END AS claimed
    FROM shared
    JOIN telemetry_iowindow w ON w.job_id = shared.id
    JOIN site_sourcejobid s ON s.id = w.source_job_id
    LEFT JOIN site_useraccount u ON u.uid = s.uid AND s.uid > 0 AND u.name = shared.owner
    WHERE w.job_id <> 0 AND w.target_id <> 0 AND {operations} > 0
),
of_windows AS (
    SELECT id, sum(operations) AS operations, sum(claimed) AS claimed FROM windows GROUP BY 1
),
sent AS (
    SELECT w.job_id AS id, sum(w.metadata_operations)::float8 AS operations
    FROM telemetry_hostwindow w
    WHERE w.job_id <> 0 AND w.job_id IN (SELECT id FROM shared)
        AND w.kind = %(JOB)s AND w.basis <> %(TOTAL)s
    GROUP BY 1
)
SELECT asked.id, greatest(s.metadata_operations, 1)::float8, CASE
    WHEN shared.id IS NULL THEN 1
    WHEN of_windows.id IS NULL THEN 0
    ELSE least(1, greatest(
        of_windows.operations - of_windows.claimed, coalesce(sent.operations, 0)
    ) / of_windows.operations)
END
FROM asked
LEFT JOIN jobs_jobstatistics s ON s.job_id = asked.id
LEFT JOIN shared USING (id)
LEFT JOIN of_windows USING (id)
LEFT JOIN sent USING (id)
""").format(operations=metadata_operations("w"))
_COLUMNS = {"job": pl.Int64(), "operations": pl.Float64(), "share": pl.Float64()}


def without_claims(subjects: Evidence) -> Evidence:
    """Set the unknown harm of jobs and their groups to 0 where only claims make it large.

    Args:
        subjects: with the columns of `harm.with_harm`.
    """
    if subjects.kind not in {Subject.JOB, *GROUPS}:
        return subjects
    unknown = subjects.frame.filter(pl.col("harm_s").is_null())
    if unknown.is_empty():
        return subjects
    proven = _proven_shares(_jobs(subjects.kind, unknown))
    load = capacity.counted_share(subjects.frame.columns) * pl.col("proven_share")
    frame = subjects.frame.join(proven, on="subject", how="left").with_columns(
        harm_s=pl.when(load < HARM_SHARE).then(0.0).otherwise("harm_s")
    )
    return replace(subjects, frame=frame.drop("proven_share"))


def _jobs(kind: Subject, subjects: pl.DataFrame) -> pl.DataFrame:
    """Return the jobs of subjects: columns subject, job and capacity_per_s."""
    rows = subjects.select("subject", "capacity_per_s")
    if kind is Subject.JOB:
        return rows.with_columns(job=pl.col("subject").cast(pl.Int64))
    until: Any = subjects["until"].max()
    jobs = group_evidence.jobs_of(kind, subjects["subject"].to_list(), until - DAY, until)
    return rows.join(jobs, on="subject")


def _proven_shares(jobs: pl.DataFrame) -> pl.DataFrame:
    """Return the part of the operations of each subject's jobs that is not only claimed."""
    values: dict[str, Any] = {
        "jobs": jobs["job"].to_list(),
        "capacities": jobs["capacity_per_s"].to_list(),
        "JOB": Principal.JOB.value,
        "TOTAL": IoWindow.Basis.TOTAL.value,
    }
    with connection.cursor() as cursor:
        cursor.execute(_PROVEN, values)
        proven = pl.DataFrame(cursor.fetchall(), schema=_COLUMNS, orient="row")
    operations = pl.col("operations")
    return (
        jobs.join(proven, on="job")
        .group_by("subject")
        .agg(proven_share=(operations * pl.col("share")).sum() / operations.sum())
    )
