"""The job ids in telemetry and the jobs that they may name.

Which of these an operation belongs to is decided for RPCs in `rpc_claims`, and for counters in
the database function jobs_job_named (`ioportal/jobs/migrations/named_jobs.sql`).
"""

from collections.abc import Iterable
from datetime import timedelta

from django.db import connection

# A job id names a job only this close to its run, in both.
STARTS_WITHIN = timedelta(minutes=5)
ENDED_WITHIN = timedelta(hours=1)


def with_namesakes(job_ids: Iterable[int]) -> tuple[set[int], set[int]]:
    """Return jobs with all jobs that share a source job id, and all their source job ids.

    Telemetry with one of these ids belongs to one of these jobs, is ambiguous among them, or is
    pending.
    """
    jobs = set(job_ids)
    while True:
        source_job_ids = _related(
            "SELECT DISTINCT source_job_id FROM jobs_namedjob WHERE job_id = ANY(%s)", jobs
        )
        named = named_by(source_job_ids)
        if named <= jobs:
            return jobs, source_job_ids
        jobs |= named


def named_by(source_job_ids: set[int]) -> set[int]:
    """Return the jobs that source job ids may name, at any time."""
    return _related(
        "SELECT DISTINCT job_id FROM jobs_namedjob WHERE source_job_id = ANY(%s)", source_job_ids
    )


def _related(query: str, ids: set[int]) -> set[int]:
    with connection.cursor() as cursor:
        cursor.execute(query, [sorted(ids)])
        return {row[0] for row in cursor.fetchall()}
