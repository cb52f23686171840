"""The job ids that telemetry carries, and the jobs that they may name."""

from collections.abc import Iterable
from datetime import timedelta

from django.db import connection

# As in the function jobs_job_named of the database: how far from its run a job is named still.
STARTS_WITHIN = timedelta(minutes=5)
ENDED_WITHIN = timedelta(hours=1)


def source_job_ids(job_ids: Iterable[int]) -> list[int]:
    """Return the source job ids that may name one of these jobs."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT source_job_id FROM jobs_namedjob WHERE job_id = ANY(%s)",
            [sorted(job_ids)],
        )
        return [row[0] for row in cursor.fetchall()]
