"""Health: sources, pending work, database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from ioportal.web.common import exports
from ioportal.web.common.staff_only import staff_only
from ioportal.web.ingest import segments
from ioportal.web.ingest.health import HEADER, Health

if TYPE_CHECKING:
    from django.http import HttpResponseBase

    from ioportal.web.common.requests import UserRequest


@require_safe
@staff_only
@exports.accept("csv", "json")
def health(request: UserRequest) -> HttpResponseBase:
    """Sources, pending work and the database; exports have the sources."""
    page = Health(timezone.now())
    if exports.requested_format(request):
        return exports.response(request, "health", page.about(), HEADER, page.export_rows())
    context = {
        "section": "ingest",
        "tab": "health",
        "counts": segments.tab_counts(),
        "health": page,
    }
    return render(request, "ingest/health.html", context)
