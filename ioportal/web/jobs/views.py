"""The page of one job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from ioportal.analysis.populations import FEWEST
from ioportal.ingest import late_accounting
from ioportal.jobs import workloads
from ioportal.jobs.models import DirtyStatistics, Job
from ioportal.reporting import job_facts
from ioportal.reporting.ranges import TimeRange
from ioportal.reporting.series import JobSeries
from ioportal.reporting.timelines import KINDS, Timeline
from ioportal.studies import similar_jobs
from ioportal.web.common import exports
from ioportal.web.common.requests import asked, storable
from ioportal.web.flags import badges
from ioportal.web.jobs.job_query import (
    launch_of,
    methods_of,
    report_of,
    run_of,
    shown_by_default,
    statistics_of,
    visible_job,
)

if TYPE_CHECKING:
    from django.http import HttpResponseBase

    from ioportal.charts.time_axis import Mark
    from ioportal.web.common.requests import UserRequest

_STARTUP = 0.1  # of the run, as the metric's name has it
_RECORDS_SHOWN = 5
_TRACES_SHOWN = 6  # the others fold
_NAMESAKES_SHOWN = 20
_PANDA_JOBS_SHOWN = 10
_TASKS_SHOWN = 5


@require_safe
@login_required
def find(request: UserRequest, cluster: str, batch_id: str) -> HttpResponse:
    """Go to the latest job of a batch id; ``array_index`` picks a task."""
    jobs = Job.objects.visible_to(request.user).filter(
        cluster__name=cluster, batch_id=storable(batch_id)
    )
    if "array_index" in request.GET:
        jobs = jobs.filter(array_index=asked(request, "array_index"))
    latest = jobs.order_by("-submitted_at", "-pk").first()
    if latest is None:
        raise Http404(f"You can see no job {batch_id} of {cluster}.")
    return redirect("job", latest.pk)


@require_safe
@login_required
@exports.offered("json")
def detail(request: UserRequest, pk: int) -> HttpResponseBase:
    """What a job was, what it did, and how it compares."""
    job = visible_job(request, pk)
    statistics = statistics_of(job)
    if exports.asked_format(request):
        return exports.json_response(job_facts.facts(job, statistics, workloads.inside(job)))
    page: dict[str, Any] = {
        "section": "jobs",
        "job": job,
        "statistics": statistics,
        "hosts": job_facts.hosts(job),
        "is_stale": DirtyStatistics.objects.filter(job_id=job.pk).exists(),
        "launches": job.launches.order_by("started_at", "name"),
        "namesakes": _namesakes(request, job),
        "records": _records(request, job),
        "late": late_accounting.for_job(job),
        "flags": badges.of_job(job, request.user),
    }
    if statistics:
        standings = similar_jobs.standings(job, statistics)
        page |= {
            "groups": job_facts.groups(statistics),
            "by_kind": job_facts.by_kind(statistics),
            "standings": standings,
            "peers_known": any(standing.rank is not None for standing in standings),
            "fewest_peers": FEWEST,
        }
    if inside := workloads.inside(job):
        page |= _what_ran_inside(job, inside)
    run = run_of(job)
    if run:
        page |= _what_it_did(request, job, run, badges.marks(page["flags"], job.ended_at))
    return render(request, "jobs/detail.html", page)


def _what_ran_inside(job: Job, inside: workloads.Inside) -> dict[str, Any]:
    return {
        "panda": inside,
        "panda_jobs": workloads.in_order(job)[:_PANDA_JOBS_SHOWN],
        "tasks_shown": inside.tasks[:_TASKS_SHOWN],
        "more_tasks": max(len(inside.tasks) - _TASKS_SHOWN, 0),
    }


def _what_it_did(
    request: UserRequest, job: Job, run: TimeRange, flag_marks: list[Mark]
) -> dict[str, Any]:
    window, refused = shown_by_default(run), []
    try:
        window = TimeRange.from_query(request.GET, window)
    except ValidationError as error:
        refused = error.messages
    series = JobSeries(job, window)
    launch = launch_of(request, job)
    traces = [(trace, trace.words_within(run)) for trace in series.traces(run)]
    return {
        "run": run,
        "startup": TimeRange(run.start, run.start + (run.end - run.start) * _STARTUP),
        "window": window,
        "refused": refused,
        "timelines": [Timeline(kind, series, window, flag_marks) for kind in KINDS],
        "traces": traces[:_TRACES_SHOWN],
        "more_traces": traces[_TRACES_SHOWN:],
        "launch": launch,
        "report": report_of(job, launch, window),
        "methods": [] if launch else methods_of(job, window),
    }


def _namesakes(request: UserRequest, job: Job) -> list[Job]:
    """Return other jobs of the same batch id: ids repeat, tasks of an array share one."""
    jobs = Job.objects.visible_to(request.user).filter(
        cluster=job.cluster_id, batch_id=job.batch_id
    )
    return list(jobs.exclude(pk=job.pk).order_by("-submitted_at", "-pk")[:_NAMESAKES_SHOWN])


def _records(request: UserRequest, job: Job) -> list[Any]:
    """Return where the job's facts were read; logs are for staff."""
    if not request.user.is_staff:
        return []
    return list(job.records.select_related("segment").order_by("-pk")[:_RECORDS_SHOWN])
