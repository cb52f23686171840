"""Trends of selected jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import Http404
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from ioportal.analysis.trends import Step
from ioportal.studies.populations import kind_in
from ioportal.web.common import exports
from ioportal.web.trends.page import TrendsPage

if TYPE_CHECKING:
    from django.http import HttpResponseBase

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
        "simulated": page.simulated,
        "step": page.buckets.step,
        "time_zone": timezone.get_current_timezone_name(),
        "upgrades": [{"at": mark.at, "what": mark.text} for mark in chart.marks],
        "not_observed": [
            {"start": gap.start, "end": gap.end, "known": gap.known.value} for gap in chart.gaps
        ],
    }
    header = [*_BUCKET, *chart.columns]
    return exports.response(request, f"trend-{name}", about, header, chart.rows())
