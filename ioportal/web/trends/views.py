"""How jobs, and what they do, change over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth.decorators import login_required
from django.http import Http404
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from ioportal.analysis.trends import Step
from ioportal.web.common import exports
from ioportal.web.common.job_kinds import counted_in
from ioportal.web.trends.page import Trends

if TYPE_CHECKING:
    from django.http import HttpResponseBase

    from ioportal.web.common.requests import UserRequest

_BUCKET = ("bucket", "start", "end")


@require_safe
@login_required
def trends(request: UserRequest) -> HttpResponseBase:
    """Charts over time of the jobs that the filters choose."""
    page = Trends(request.user, request.GET, counted=counted_in(request.GET))
    return render(
        request,
        "trends/page.html",
        {
            "section": "trends",
            "trends": page,
            "charts": list(page.charts()),
            "steps": list(Step),
        },
    )


@require_safe
@login_required
@exports.offered("csv", "json")
def trend(request: UserRequest, name: str) -> HttpResponseBase:
    """One chart's twin."""
    page = Trends(request.user, request.GET, counted=counted_in(request.GET))
    if name not in page.offered.names:
        raise Http404("There is no such trend.")
    if errors := {**page.filter.errors, **page.refused}:
        return exports.refuse(errors)
    if page.buckets is None:
        return exports.twin(request, f"trend-{name}", {}, _BUCKET, [])
    [shown] = page.charts([name])
    about: dict[str, Any] = {
        "counted": page.counted.plural,
        "chart": shown.chart.title,
        "unit": str(shown.unit or shown.chart.unit),
        "simulated": page.simulated,
        "step": page.buckets.step,
        "time_zone": timezone.get_current_timezone_name(),
        "upgrades": [{"at": mark.at, "what": mark.text} for mark in shown.marks],
        "not_observed": [
            {"start": gap.start, "end": gap.end, "known": gap.known.value} for gap in shown.gaps
        ],
    }
    return exports.twin(request, f"trend-{name}", about, [*_BUCKET, *shown.columns], shown.rows())
