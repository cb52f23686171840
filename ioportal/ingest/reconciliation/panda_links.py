"""The links of PanDA jobs to batch jobs, found again in Python to check those of SQL."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from collectors import tables
from ioportal.jobs import panda_jobs
from ioportal.jobs.models import Job, WorkloadJob

if TYPE_CHECKING:
    from datetime import timedelta

    from ioportal.ingest.models import Segment


def wrong_links(segment: Segment) -> int:
    """Return the number of missing or wrong links of a segment's PanDA jobs to batch jobs.

    Computed in Python, independently of the SQL that creates the links.
    """
    if segment.table is not tables.WORKLOAD_JOBS:
        return 0
    times = ("started_at", "ended_at")
    workload_jobs = list(
        WorkloadJob.objects.filter(records__segment=segment)
        .values_list("pk", "batch_id", "array_index", *times, "modified_at", named=True)
        .distinct()
    )
    jobs: dict[str, list[Any]] = defaultdict(list)
    for job in Job.objects.filter(
        cluster=segment.cluster,
        batch_id__in={job.batch_id for job in workload_jobs} - {""},
        started_at__isnull=False,
    ).values_list("pk", "batch_id", "array_index", *times, "submitted_at", named=True):
        jobs[job.batch_id].append(job)
    expected = {
        (workload_job.pk, job.pk)
        for workload_job in workload_jobs
        for job in _enclosing_jobs(workload_job, jobs[workload_job.batch_id])
    }
    links = WorkloadJob.jobs.through.objects.filter(workloadjob__records__segment=segment)
    return len(expected.symmetric_difference(links.values_list("workloadjob_id", "job_id")))


def _enclosing_jobs(workload_job: Any, jobs: list[Any]) -> list[Any]:
    """Return the batch jobs, one per array index, in which a PanDA job ran.

    Args:
        workload_job: the PanDA job.
        jobs: the candidates, all with its batch id.
    """
    times = filter(None, (workload_job.started_at, workload_job.ended_at, workload_job.modified_at))
    start = next(times, None)
    if start is None:
        return []
    end = workload_job.ended_at or max(start, workload_job.modified_at or start)

    def fit(job: Any) -> tuple[bool, timedelta, timedelta]:
        started = job.started_at or start
        return (
            started > start + panda_jobs.CLOCK_TOLERANCE,
            abs(started - start),
            start - job.submitted_at,
        )

    nearest: dict[str, Any] = {}
    for job in sorted(jobs, key=fit):
        started, ended = job.started_at, job.ended_at
        if (
            workload_job.array_index in {"", job.array_index}
            and started
            and started <= end + panda_jobs.CLOCK_TOLERANCE
            and (ended is None or ended >= start - panda_jobs.CLOCK_TOLERANCE)
        ):
            nearest.setdefault(job.array_index, job)
    return list(nearest.values())
