"""Load that only job ids claim: any job on a node that several owners share can send another's id.

A user id in the job id, which the client's kernel adds, proves the owner.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl
from django.db import connection

from ioportal.findings import group_evidence
from ioportal.rules import capacity
from ioportal.rules.evidence import DAY
from ioportal.rules.rule import GROUPS, HARM_SHARE, Subject

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioportal.findings.evidence import Evidence

_CLAIMS = """
WITH asked AS MATERIALIZED (
    SELECT j.id, j.owner, j.started_at, coalesce(j.ended_at, 'infinity') AS ended_at
    FROM jobs_job j WHERE j.id = ANY(%(jobs)s) AND j.started_at IS NOT NULL AND NOT EXISTS (
        SELECT FROM jobs_namedjob n
        JOIN site_sourcejobid s ON s.id = n.source_job_id AND s.uid > 0
        JOIN site_useraccount u ON u.uid = s.uid AND u.name = j.owner
        WHERE n.job_id = j.id
    )
),
active AS MATERIALIZED (
    SELECT id, owner, started_at, coalesce(ended_at, 'infinity') AS ended_at FROM jobs_job
    WHERE started_at IS NOT NULL AND tstzrange(started_at, ended_at)
        && (SELECT tstzrange(min(started_at), max(ended_at)) FROM asked)
)
SELECT DISTINCT j.id
FROM asked j
JOIN jobs_allocation a ON a.job_id = j.id
JOIN jobs_allocation b ON b.node_id = a.node_id AND b.job_id <> a.job_id
JOIN active other ON other.id = b.job_id
WHERE (other.owner <> j.owner OR other.owner = '')
    AND other.started_at < j.ended_at AND other.ended_at > j.started_at
"""
_OPERATIONS = """
SELECT job_id, metadata_operations::float8 FROM jobs_jobstatistics
WHERE job_id = ANY(%(jobs)s) AND metadata_operations > 0
"""


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
    shares = [(subject, _proven_share(jobs)) for subject, jobs in _jobs(subjects.kind, unknown)]
    proven = pl.DataFrame(shares, {"subject": pl.String, "proven_share": pl.Float64}, orient="row")
    load = capacity.counted_share(subjects.frame.columns) * pl.col("proven_share")
    frame = subjects.frame.join(proven, on="subject", how="left").with_columns(
        harm_s=pl.when(load < HARM_SHARE).then(0.0).otherwise("harm_s")
    )
    return replace(subjects, frame=frame.drop("proven_share"))


def _jobs(kind: Subject, subjects: pl.DataFrame) -> Iterator[tuple[str, list[int]]]:
    for subject, until in subjects.select("subject", "until").iter_rows():
        if kind is Subject.JOB:
            yield subject, [int(subject)]
        else:
            yield subject, group_evidence.jobs_of(kind, subject, until - DAY, until)


def _proven_share(jobs: list[int]) -> float:
    """Return the part of the operations of some jobs that is not only claimed."""
    values: dict[str, Any] = {"jobs": jobs}
    with connection.cursor() as cursor:
        cursor.execute(_CLAIMS, values)
        claims = {job for (job,) in cursor.fetchall()}
        if not claims:
            return 1.0
        cursor.execute(_OPERATIONS, values)
        operations = dict(cursor.fetchall())
    proven = sum(count for job, count in operations.items() if job not in claims)
    share: float = proven / (sum(operations.values()) or 1.0)
    return share
