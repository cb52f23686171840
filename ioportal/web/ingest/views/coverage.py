"""What was observed, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.exceptions import ValidationError
from django.shortcuts import render
from django.views.decorators.http import require_safe

from ioportal.reporting.ranges import TimeRange
from ioportal.web.common import exports
from ioportal.web.common.access import staff_only
from ioportal.web.ingest import segments
from ioportal.web.ingest.coverage import default_range, rows

if TYPE_CHECKING:
    from django.http import HttpResponseBase

    from ioportal.web.common.requests import UserRequest

_HEADER = ["source", "name", "filesystem", "simulated", "start", "end"]


@require_safe
@staff_only
@exports.offered("csv", "json")
def coverage(request: UserRequest) -> HttpResponseBase:
    """Each source's strip over a range; the twins have its intervals."""
    window = default_range()
    refused: list[str] = []
    if window:
        try:
            window = TimeRange.from_query(request.GET, window)
        except ValidationError as error:
            refused = error.messages
    found = list(rows(window)) if window else []
    if exports.asked_format(request):
        if refused:
            return exports.refuse({"range": refused})
        intervals = (
            (row.source.value, row.name, row.filesystem, row.simulated, *interval)
            for row in found
            for interval in row.observed
        )
        about = {"start": window.start, "end": window.end} if window else {}
        return exports.twin(request, "coverage", about, _HEADER, intervals)
    return render(
        request,
        "ingest/coverage.html",
        {
            "section": "ingest",
            "tab": "coverage",
            "waiting": segments.waiting(),
            "window": window,
            "refused": refused,
            "rows": found,
            "simulated": any(row.simulated for row in found),
        },
    )
