"""A job id that telemetry carries, and the job of that time that it names."""

from collections.abc import Iterable
from datetime import timedelta

from django.db import connection

# A job that ran then is named before one that begins soon (clocks differ) or ended lately
# (write-back and clean-up carry its id still).
STARTS_WITHIN = timedelta(minutes=5)
ENDED_WITHIN = timedelta(hours=1)
MARGINS = {"starts_within": STARTS_WITHIN, "ended_within": ENDED_WITHIN}

# Goes after a CTE keys(source_job_id, start, end); values are those of MARGINS.
NAMED = """
named AS (
    SELECT source_job_id, start, "end",
        CASE WHEN running > 0 THEN running ELSE near END AS jobs,
        CASE WHEN running > 0 THEN running_job ELSE near_job END AS job_id
    FROM (
        SELECT k.source_job_id, k.start, k."end",
            count(DISTINCT j.job_id) FILTER (WHERE j.running) AS running,
            min(j.job_id) FILTER (WHERE j.running) AS running_job,
            count(DISTINCT j.job_id) AS near,
            min(j.job_id) AS near_job
        FROM keys k
        LEFT JOIN LATERAL (
            SELECT n.job_id,
                n.started_at < greatest(k."end", k.start + interval '1 microsecond')
                    AND n.ended_at > k.start AS running
            FROM jobs_namedjob n
            WHERE n.source_job_id = k.source_job_id
                AND n.started_at - %(starts_within)s < k."end"
                AND n.ended_at + %(ended_within)s > k.start
        ) j ON true
        GROUP BY k.source_job_id, k.start, k."end"
    ) candidates
)
"""


def namesakes(job_ids: Iterable[int]) -> tuple[set[int], set[int]]:
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
