"""Coverage: observed intervals by source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.shortcuts import render
from django.views.decorators.http import require_safe

from ioportal.core.time_ranges import TimeRange
from ioportal.web.common import exports
from ioportal.web.common.staff_only import staff_only
from ioportal.web.ingest import segments
from ioportal.web.ingest.coverage import default_range, rows
from ioportal.web.ingest.coverage import unexplained as by_target

if TYPE_CHECKING:
    from django.http import HttpResponseBase

    from ioportal.web.common.requests import UserRequest

_HEADER = ["source", "name", "filesystem", "simulated", "start", "end"]
_UNEXPLAINED_HEADER = ["target", "filesystem", "simulated", "hour", "md_stats", "job_stats"]


@require_safe
@staff_only
@exports.accept("csv", "json")
def coverage(request: UserRequest) -> HttpResponseBase:
    """Observed intervals in a range."""
    default = default_range()
    window, errors = TimeRange.or_default(request.GET, default) if default else (None, [])
    sources = list(rows(window)) if window else []
    if exports.requested_format(request):
        if errors:
            return exports.invalid_query({"range": errors})
        intervals = (
            (row.source.value, row.name, row.filesystem, row.simulated, *interval)
            for row in sources
            for interval in row.observed
        )
        about = {"start": window.start, "end": window.end} if window else {}
        return exports.response(request, "coverage", about, _HEADER, intervals)
    return render(
        request,
        "ingest/coverage.html",
        {
            "section": "ingest",
            "tab": "coverage",
            "counts": segments.tab_counts(),
            "window": window,
            "errors": errors,
            "rows": sources,
            "unexplained": by_target(window) if window else [],
            "simulated": any(row.simulated for row in sources),
        },
    )


@require_safe
@staff_only
@exports.accept("csv", "json")
def unexplained(request: UserRequest) -> HttpResponseBase:
    """Export of metadata operations by MDT and hour, in md_stats and in job_stats."""
    default = default_range()
    window, errors = TimeRange.or_default(request.GET, default) if default else (None, [])
    if errors:
        return exports.invalid_query({"range": errors})
    hours = (
        (
            row.target.name,
            row.target.filesystem.name,
            row.target.filesystem.simulated,
            hour.start,
            hour.counted,
            hour.explained,
        )
        for row in (by_target(window) if window else [])
        for hour in row.hours
    )
    about = {"start": window.start, "end": window.end} if window else {}
    return exports.response(request, "unexplained", about, _UNEXPLAINED_HEADER, hours)
