"""Trends of selected jobs."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponseBadRequest
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from ioportal.changes import change_points as studied
from ioportal.core.charts.time_axis import Meaning
from ioportal.jobs.analysis.trends import Step
from ioportal.jobs.populations import scopes
from ioportal.jobs.populations.selections import kind_in
from ioportal.web.common import exports
from ioportal.web.trends.change_points import COLUMNS, ChangePointsPage
from ioportal.web.trends.page import TrendsPage

if TYPE_CHECKING:
    from django.http import HttpResponse, HttpResponseBase

    from ioportal.web.common.requests import UserRequest

_BUCKET = ("bucket", "start", "end")


@require_safe
def trends(request: UserRequest) -> HttpResponseBase:
    """Charts of selected jobs over time."""
    page = TrendsPage(request.user, request.GET, kind=kind_in(request.GET))
    context = {
        "section": "trends",
        "page": page,
        "charts": list(page.charts()),
        "steps": list(Step),
    }
    return render(request, "trends/page.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@exports.accept("csv", "json")
def change_points(request: UserRequest) -> HttpResponseBase:
    """Show the change points of selected jobs; staff may dismiss one with a POST."""
    page = ChangePointsPage(request.user, request.GET, kind=kind_in(request.GET))
    if request.method == "POST":
        return _dismiss(request, page.scope)
    if exports.requested_format(request):
        if errors := {**page.filter.errors, **page.errors}:
            return exports.invalid_query(errors)
        about = {"pending_statistics": page.pending_statistics}
        return exports.response(request, "change-points", about, COLUMNS, page.rows)
    context = {"section": "trends", "page": page}
    return render(request, "trends/change_points.html", context)


def _dismiss(request: UserRequest, scope: str) -> HttpResponse:
    if not request.user.is_staff:
        raise PermissionDenied("Only staff may dismiss change points.")
    try:
        day = date.fromisoformat(request.POST.get("day", ""))
    except ValueError:
        return HttpResponseBadRequest("The day must be a date.")
    if len(scope) > scopes.MAX_LENGTH:
        return HttpResponseBadRequest("The filters of the jobs are too long.")
    studied.dismiss(scope, day, request.user.get_username())
    messages.success(request, f"Change point of {day} dismissed.")
    return redirect(f"{reverse('trends')}?{request.GET.urlencode()}")


@require_safe
@exports.accept("csv", "json")
def trend(request: UserRequest, name: str) -> HttpResponseBase:
    """Export one chart."""
    page = TrendsPage(request.user, request.GET, kind=kind_in(request.GET))
    if name not in page.offered.names:
        raise Http404("No such trend.")
    if errors := {**page.filter.errors, **page.errors}:
        return exports.invalid_query(errors)
    if page.buckets is None:
        return exports.response(request, f"trend-{name}", {}, _BUCKET, [])
    [chart] = page.charts([name])
    about: dict[str, Any] = {
        "counted": page.job_kind.plural,
        "chart": chart.chart.title,
        "unit": str(chart.unit or chart.chart.unit),
        "pending_statistics": page.pending_statistics,
        "simulated": page.simulated,
        "step": page.buckets.step,
        "time_zone": timezone.get_current_timezone_name(),
        "upgrades": chart.marked(Meaning.BREAK),
        "mitigations": chart.marked(Meaning.MITIGATION),
        "not_observed": [
            {"start": gap.start, "end": gap.end, "known": gap.known.value} for gap in chart.gaps
        ],
    }
    header = [*_BUCKET, *chart.columns]
    return exports.response(request, f"trend-{name}", about, header, chart.rows())
