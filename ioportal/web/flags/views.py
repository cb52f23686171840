"""The page of one flag: a finding with its evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import Http404
from django.shortcuts import render
from django.views.decorators.http import require_safe

from ioportal.web.common import exports
from ioportal.web.flags.page import FlagPage

if TYPE_CHECKING:
    from django.http import HttpResponseBase

    from ioportal.web.common.requests import UserRequest


@require_safe
@exports.accept("json")
def flag(request: UserRequest, pk: int) -> HttpResponseBase:
    """Show one flag."""
    page = FlagPage(request.user, pk)
    if exports.requested_format(request):
        return exports.json_response(page.facts)
    address = request.build_absolute_uri(request.path)
    context = {"section": "cases", "page": page, "address": address}
    return render(request, "flags/flag.html", context)


@require_safe
@exports.accept("csv", "json")
def flag_history(request: UserRequest, pk: int) -> HttpResponseBase:
    """Export the history of a flag's measure."""
    page = FlagPage(request.user, pk)
    chart = page.history_chart
    if chart is None:
        raise Http404("The measure has no history, or its data is past retention.")
    about = {"flag": pk, "title": chart.chart.title, "unit": chart.chart.unit}
    about |= {"simulated": page.simulated}
    return exports.response(request, f"flag-{pk}", about, chart.header, chart.rows())


@require_safe
@exports.accept("csv", "json")
def flag_similar_jobs(request: UserRequest, pk: int) -> HttpResponseBase:
    """Export the histogram of an outlier's similar jobs."""
    page = FlagPage(request.user, pk)
    histogram = page.outlier_histogram
    if histogram is None:
        raise Http404("The flag has no histogram of similar jobs.")
    about = {"flag": pk, "title": histogram.metric.title, "simulated": page.simulated}
    name = f"flag-{pk}-similar-jobs"
    return exports.response(request, name, about, histogram.columns, histogram.values)
