"""What a request asks about a job."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.http import Http404
from django.shortcuts import get_object_or_404

from ioportal.jobs import rpc_reports
from ioportal.jobs.models import Job, JobStatistics, Launch
from ioportal.reporting.ranges import TimeRange
from ioportal.telemetry.models import Method
from ioportal.web.common.requests import asked

if TYPE_CHECKING:
    from datetime import datetime

    from ioportal.analysis.rpc_report import RpcReport
    from ioportal.web.common.requests import UserRequest

_MARGIN = 0.02  # of the run, shown before and after it


def visible_job(request: UserRequest, pk: int) -> Job:
    """Return a job that the user may see.

    Raises:
        Http404: there is none; whether somebody else has one is not told.
    """
    jobs = Job.objects.visible_to(request.user).select_related("cluster", "statistics")
    return get_object_or_404(jobs, pk=pk)


def statistics_of(job: Job) -> JobStatistics | None:
    """Return a job's statistics; None while they are not computed."""
    return getattr(job, "statistics", None)


def run_of(job: Job) -> TimeRange | None:
    """Return when a job ran, as far as it is known; None where that is no time at all."""
    if job.started_at is None or job.known_until is None or job.known_until <= job.started_at:
        return None
    return TimeRange(job.started_at, job.known_until)


def shown_by_default(run: TimeRange) -> TimeRange:
    """Return the range that timelines show unless the URL asks for one: whole seconds."""
    margin = (run.end - run.start) * _MARGIN + timedelta(seconds=1)
    start, end = run.start - margin, run.end + margin
    return TimeRange(start.replace(microsecond=0), end.replace(microsecond=0))


def launch_of(request: UserRequest, job: Job) -> Launch | None:
    """Return the launch that the URL picks.

    Raises:
        Http404: the job has no such launch.
    """
    name = asked(request, "launch")
    if not name:
        return None
    launch = job.launches.filter(name=name).first()
    if launch is None:
        raise Http404(f"Job {job} has no such launch.")
    return launch


def report_of(job: Job, launch: Launch | None, window: TimeRange | None) -> RpcReport | None:
    """Return the RPC report of a job or of one of its launches, in a part of its run or all of it.

    None where no trace covers any of it.
    """
    within = _reported(window)
    return rpc_reports.of_launch(launch, *within) if launch else rpc_reports.of_job(job, *within)


_METHODS = {
    Method.JOB_ID: "carried its job id",
    Method.NODE: "came from nodes that it had to itself",
    Method.NODE_PROCESS: "carried a process's name and came from nodes that it had to itself",
}


def methods_of(job: Job, window: TimeRange) -> list[tuple[int, str]]:
    """Return how many RPCs of the job's report are known to be its own, and by what."""
    found = rpc_reports.methods_of_job(job, *_reported(window))
    return [(rpcs, _METHODS[method]) for method, rpcs in found]


def _reported(window: TimeRange | None) -> tuple[datetime, datetime] | tuple[None, None]:
    """Return the range of the RPC report: the one that was asked for; none means the whole run."""
    return (window.start, window.end) if window and window.asked else (None, None)
