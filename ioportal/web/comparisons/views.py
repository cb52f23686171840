"""Comparisons of populations, and overlaid timelines of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import Http404
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from ioportal.web.common import exports
from ioportal.web.common.requests import parameter
from ioportal.web.comparisons import overlay
from ioportal.web.comparisons.overlay import OverlayPage

if TYPE_CHECKING:
    from django.http import HttpResponseBase

    from ioportal.web.common.requests import UserRequest


@require_safe
def compare(request: UserRequest) -> HttpResponseBase:
    """Populations next to each other."""
    return render(request, "base.html", {"section": "compare"})


@require_safe
def compare_jobs(request: UserRequest) -> HttpResponseBase:
    """Timelines of jobs over each other; ``add`` adds a job by its id or URL."""
    page = OverlayPage(request.user, request.GET)
    added = parameter(request, "add")
    if added and (job := overlay.find_job(request.user, added)):
        return redirect(page.address(job.pk))
    context = {"section": "compare", "page": page, "not_found": added}
    return render(request, "comparisons/jobs.html", context)


@require_safe
@exports.accept("csv", "json")
def compare_jobs_chart(request: UserRequest, name: str) -> HttpResponseBase:
    """Export one overlaid chart."""
    page = OverlayPage(request.user, request.GET)
    chart = page.overlay(name)
    if chart is None:
        raise Http404("No such chart.")
    if page.errors:
        return exports.invalid_query(page.errors)
    return exports.response(request, f"jobs-{name}", chart.about, overlay.HEADER, chart.rows())
