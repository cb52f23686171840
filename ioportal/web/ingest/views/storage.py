"""What the database takes on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.shortcuts import render
from django.views.decorators.http import require_safe

from ioportal.web.common import exports
from ioportal.web.common.access import staff_only
from ioportal.web.ingest import segments
from ioportal.web.ingest.storage import HEADER, Storage

if TYPE_CHECKING:
    from django.http import HttpResponseBase

    from ioportal.web.common.requests import UserRequest


@require_safe
@staff_only
@exports.offered("csv", "json")
def storage(request: UserRequest) -> HttpResponseBase:
    """Sizes, rates and a forecast; the twins have the levels' rows."""
    found = Storage()
    if exports.asked_format(request):
        about = {
            "bytes": found.total_bytes,
            "other_bytes": found.other_bytes,
            "bytes_in_30_days": found.in_a_month,
            "bytes_in_a_year": found.in_a_year,
            "timescaledb": found.version,
            "licence": found.licence,
        }
        return exports.twin(request, "storage", about, HEADER, found.twin())
    page = {
        "section": "ingest",
        "tab": "storage",
        "waiting": segments.waiting(),
        "storage": found,
    }
    return render(request, "ingest/storage.html", page)
