"""Whether data come, and whether the stages keep up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from ioportal.web.common import exports
from ioportal.web.common.access import staff_only
from ioportal.web.ingest import segments
from ioportal.web.ingest.health import HEADER, Health

if TYPE_CHECKING:
    from django.http import HttpResponseBase

    from ioportal.web.common.requests import UserRequest


@require_safe
@staff_only
@exports.offered("csv", "json")
def health(request: UserRequest) -> HttpResponseBase:
    """Sources, pending rows and the database; the twins have the sources' rows."""
    found = Health(timezone.now())
    if exports.asked_format(request):
        return exports.twin(request, "health", found.about(), HEADER, found.twin())
    page = {
        "section": "ingest",
        "tab": "health",
        "waiting": segments.waiting(),
        "health": found,
    }
    return render(request, "ingest/health.html", page)
