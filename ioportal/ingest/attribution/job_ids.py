"""The job ids that telemetry carries, and the jobs that they may name."""

from collections.abc import Iterable
from datetime import timedelta

from django.db import connection

# As in the function jobs_job_named of the database: how far from its run a job is named still.
STARTS_WITHIN = timedelta(minutes=5)
ENDED_WITHIN = timedelta(hours=1)


def with_namesakes(job_ids: Iterable[int]) -> tuple[set[int], set[int]]:
    """Return these jobs and all that share a source job id with them, and all their ids.

    What carries one of the ids is one of the jobs', or of several, or pending: nobody else's.
    """
    jobs = set(job_ids)
    while True:
        source_job_ids = _related(
            "SELECT DISTINCT source_job_id FROM jobs_namedjob WHERE job_id = ANY(%s)", jobs
        )
        named = _related(
            "SELECT DISTINCT job_id FROM jobs_namedjob WHERE source_job_id = ANY(%s)",
            source_job_ids,
        )
        if named <= jobs:
            return jobs, source_job_ids
        jobs |= named


def _related(query: str, ids: set[int]) -> set[int]:
    with connection.cursor() as cursor:
        cursor.execute(query, [sorted(ids)])
        return {row[0] for row in cursor.fetchall()}
