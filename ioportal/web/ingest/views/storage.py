"""Storage of the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.shortcuts import render
from django.views.decorators.http import require_safe

from ioportal.web.common import exports
from ioportal.web.common.staff_only import staff_only
from ioportal.web.ingest import segments
from ioportal.web.ingest.storage import HEADER, Storage

if TYPE_CHECKING:
    from django.http import HttpResponseBase

    from ioportal.web.common.requests import UserRequest


@require_safe
@staff_only
@exports.accept("csv", "json")
def storage(request: UserRequest) -> HttpResponseBase:
    """Sizes, growth and forecast; exports have the levels."""
    page = Storage()
    if exports.requested_format(request):
        about = {
            "bytes": page.total_bytes,
            "other_bytes": page.other_bytes,
            "bytes_in_30_days": page.in_a_month,
            "bytes_in_a_year": page.in_a_year,
            "timescaledb": page.version,
            "licence": page.licence,
        }
        return exports.response(request, "storage", about, HEADER, page.export_rows())
    context = {
        "section": "ingest",
        "tab": "storage",
        "counts": segments.tab_counts(),
        "storage": page,
    }
    return render(request, "ingest/storage.html", context)
