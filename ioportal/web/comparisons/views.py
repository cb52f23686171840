"""Comparisons of populations, and overlaid timelines of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from ioportal.web.common import exports
from ioportal.web.common.requests import parameter
from ioportal.web.comparisons import charts, overlay
from ioportal.web.comparisons.overlay import OverlayPage
from ioportal.web.comparisons.page import ComparisonPage
from ioportal.web.comparisons.presets import FORMS

if TYPE_CHECKING:
    from django.http import HttpResponse, HttpResponseBase

    from ioportal.web.common.requests import UserRequest

_FEW_ARMS = {"arm": ["Select at least two arms."]}


@require_safe
@exports.accept("csv", "json")
def compare(request: UserRequest) -> HttpResponseBase:
    """Two to four arms, metric by metric."""
    page = ComparisonPage(request.user, request.GET)
    if exports.requested_format(request):
        if not page.is_complete:
            return exports.invalid_query(page.errors or _FEW_ARMS)
        return exports.response(request, "comparison", page.about, *page.table.export)
    return render(request, "comparisons/page.html", {"section": "compare", "page": page})


@require_safe
@exports.accept("csv", "json")
def compare_chart(request: UserRequest, name: str) -> HttpResponseBase:
    """Export one chart of a comparison."""
    if name not in charts.PARTS:
        raise Http404("No such chart.")
    page = ComparisonPage(request.user, request.GET)
    if not page.is_complete:
        return exports.invalid_query(page.errors or _FEW_ARMS)
    part = page.part(name) if page.compared else None
    if part is None:
        raise Http404("This comparison has no such chart.")
    about = {**page.about, "chart": part.title, "metric": page.metric.name}
    return exports.response(request, f"comparison-{name}", about, *part.export)


@require_safe
def compare_preset(request: UserRequest, name: str) -> HttpResponse:
    """Redirect to the comparison of a preset."""
    if name not in FORMS:
        raise Http404("No such preset.")
    form = FORMS[name](request.user, request.GET)
    if form.is_valid():
        return redirect(f"{reverse('compare')}?{urlencode({'arm': form.arms()}, doseq=True)}")
    for field, errors in form.errors.items():
        label = form.fields[field].label or field
        messages.warning(request, f"{label}: {' '.join(map(str, errors))}")
    return redirect(f"{reverse('compare')}?{urlencode({'arm': parameter(request, 'base')})}")


@require_safe
def compare_jobs(request: UserRequest) -> HttpResponseBase:
    """Overlaid timelines of jobs; ``add`` adds a job by its id or URL."""
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
