"""The job list, the page of a job, and the exports of its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from ioportal.core.visible_text import storable, visible_text
from ioportal.jobs.models import Job
from ioportal.load import job_exports
from ioportal.web.common import exports
from ioportal.web.common.pagination import COUNTED
from ioportal.web.common.requests import parameter
from ioportal.web.jobs.job_list import JobList
from ioportal.web.jobs.page import JobPage

if TYPE_CHECKING:
    from django.http import HttpResponseBase

    from ioportal.web.common.requests import UserRequest


@require_safe
@exports.accept("csv", "json")
def job_list(request: UserRequest) -> HttpResponseBase:
    """Jobs by filters, sorted by any column."""
    listing = JobList(request.user, request.GET)
    if exports.requested_format(request):
        if errors := listing.errors:
            return exports.invalid_query(errors)
        header = ["id", "simulated", *(column.name for column in listing.columns)]
        about: dict[str, Any] = {"sort": listing.sort, "at_most": COUNTED}
        if exports.requested_format(request) == "json":
            about["pending_statistics"] = listing.pending_statistics
        return exports.response(request, "jobs", about, header, listing.values())
    if not listing.is_short:
        return redirect(f"{request.path}{listing.short_url}".removesuffix("?"))
    return render(request, "jobs/list.html", {"listing": listing, "section": "jobs"})


@require_safe
def find_job(request: UserRequest, cluster: str, batch_id: str) -> HttpResponse:
    """Redirect to the latest job of a batch id; ``array_index`` selects a task."""
    jobs = Job.objects.visible_to(request.user).filter(
        cluster__name=cluster, batch_id=storable(batch_id)
    )
    if "array_index" in request.GET:
        jobs = jobs.filter(array_index=parameter(request, "array_index"))
    latest = jobs.order_by("-submitted_at", "-pk").first()
    if latest is None:
        raise Http404(f"No visible job {batch_id} on {cluster}.")
    return redirect("job", latest.pk)


@require_safe
@exports.accept("json")
def job(request: UserRequest, pk: int) -> HttpResponseBase:
    """Facts, statistics, timelines, RPC report and rank of a job."""
    page = JobPage(request, pk)
    if exports.requested_format(request):
        return exports.json_response(page.facts)
    return render(request, "jobs/detail.html", {"section": "jobs", "page": page})


@require_safe
@exports.accept("csv", "json")
def timeline(request: UserRequest, pk: int, name: str) -> HttpResponseBase:
    """Export one timeline."""
    page = JobPage(request, pk)
    if page.range_errors:
        return exports.invalid_query({"range": page.range_errors})
    chart = page.timeline(name)
    if chart is None:
        raise Http404("No such timeline.")
    return exports.response(request, *job_exports.timeline(page.job, chart))


@require_safe
@exports.accept("csv", "json", "text")
def rpcs(request: UserRequest, pk: int) -> HttpResponseBase:
    """Export the RPC report of a job or launch; ``format=text`` as on the command line."""
    page = JobPage(request, pk)
    if page.range_errors:
        return exports.invalid_query({"range": page.range_errors})
    report = page.rpc_report
    if report is None:
        raise Http404("No trace covers this range.")
    if exports.requested_format(request) == "text":
        text = visible_text(report.text())
        return HttpResponse(f"{text}\n", content_type="text/plain; charset=utf-8")
    return exports.response(request, *job_exports.rpc_report(page.job, report))


@require_safe
@exports.accept("csv", "json")
def similar_jobs(request: UserRequest, pk: int) -> HttpResponseBase:
    """Export the ranks of a job among similar jobs."""
    page = JobPage(request, pk)
    standings = page.comparison.standings if page.comparison else []
    return exports.response(request, *job_exports.similar_jobs(page.job, standings))


@require_safe
@exports.accept("csv", "json")
def panda_jobs(request: UserRequest, pk: int) -> HttpResponseBase:
    """Export the PanDA jobs that ran inside a batch job."""
    return exports.response(request, *job_exports.panda_jobs(JobPage(request, pk).job))
