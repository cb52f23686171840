"""Concurrency of selected jobs against run time, copy latency and MDS latency."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from ioportal.jobs.populations.selections import kind_in
from ioportal.web.common import exports
from ioportal.web.load_ramp.page import BINS_HEADER, LoadRampPage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from django.http import HttpResponseBase

    from ioportal.web.common.requests import UserRequest

_BUCKET = ("bucket", "start", "end")


@require_safe
def load_ramp(request: UserRequest) -> HttpResponseBase:
    """Charts of the load ramp."""
    page = LoadRampPage(request.user, request.GET, kind=kind_in(request.GET))
    return render(request, "load_ramp/page.html", {"section": "load_ramp", "page": page})


@require_safe
@exports.accept("csv", "json")
def over_time(request: UserRequest) -> HttpResponseBase:
    """Export the concurrency and the medians of all metrics over time."""
    return _export(
        request,
        "load-ramp-over-time",
        lambda page: ([*_BUCKET, *page.series.columns], page.series_rows),
    )


@require_safe
@exports.accept("csv", "json")
def bins(request: UserRequest) -> HttpResponseBase:
    """Export the medians of all metrics by concurrency, and the conclusions."""
    return _export(request, "load-ramp", lambda page: (BINS_HEADER, page.bins_rows))


def _export(
    request: UserRequest,
    name: str,
    table: Callable[[LoadRampPage], tuple[Sequence[str], Iterable[Sequence[Any]]]],
) -> HttpResponseBase:
    page = LoadRampPage(request.user, request.GET, kind=kind_in(request.GET))
    if errors := {**page.filter.errors, **page.errors}:
        return exports.invalid_query(errors)
    if page.result is None or page.buckets is None:
        return exports.response(request, name, {}, (), [])
    about = {
        "counted": page.job_kind.plural,
        "load": page.load.title,
        "simulated": page.simulated,
        "step": page.buckets.step,
        "time_zone": timezone.get_current_timezone_name(),
        "conclusions": [
            {
                "metric": shown.metric.name,
                "unit": str(shown.metric.unit),
                "conclusion": shown.conclusion,
                "correlation": shown.correlation,
            }
            for shown in page.relations
        ],
    }
    header, rows = table(page)
    return exports.response(request, name, about, header, rows)
