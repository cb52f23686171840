"""Ingested files, unregistered NIDs and pending job ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from ioportal.ingest.models import Segment
from ioportal.ingest.reconciliation import attributed_operations
from ioportal.site.models import Filesystem
from ioportal.web.common import exports
from ioportal.web.common.pagination import COUNTED, CountedPaginator
from ioportal.web.common.requests import parameter
from ioportal.web.common.staff_only import staff_only
from ioportal.web.ingest import segments

if TYPE_CHECKING:
    from django.core.paginator import Page
    from django.db.models import QuerySet
    from django.http import HttpResponseBase

    from ioportal.web.common.requests import UserRequest

_PER_PAGE = 50
_ROWS_AT_ONCE = 2_000
_SEGMENT_HEADER = [
    "id",
    "simulated",
    "format",
    "name",
    "start",
    "end",
    "lines",
    "accepted",
    "rejected",
    "irrelevant",
    "records",
    "rpcs",
    "loaded_at",
]
_PENDING_HEADER = [
    "id",
    "batch_id",
    "array_index",
    "launch",
    "filesystem",
    "simulated",
    "first_counted",
    "last_counted",
    "opens",
]
_REJECT_HEADER = ["line", "reason", "text"]


@require_safe
@staff_only
@exports.accept("csv", "json")
def segment_list(request: UserRequest) -> HttpResponseBase:
    """Ingested files, latest first."""
    selection = segments.SegmentFilter(
        request.GET, queryset=Segment.objects.visible_to(request.user).loaded()
    )
    is_export = exports.requested_format(request)
    if is_export and not selection.is_valid():
        return exports.invalid_query(selection.errors)
    is_valid = selection.is_valid()
    files = selection.qs.order_by("-loaded_at", "-pk") if is_valid else Segment.objects.none()
    if is_export:
        rows = segments.described(files).values_list(*_SEGMENT_HEADER)[:COUNTED]
        about = {"at_most": COUNTED}
        return exports.response(
            request, "segments", about, _SEGMENT_HEADER, rows.iterator(_ROWS_AT_ONCE)
        )
    page = _page(request, segments.with_sources(files))
    return render(
        request,
        "ingest/segments.html",
        {
            **_frame("segments"),
            "filter": selection,
            "page": page,
            "simulated": any(segment.simulated for segment in page),
            "all_simulated": page and all(segment.simulated for segment in page),
        },
    )


@require_safe
@staff_only
@exports.accept("csv", "json")
def segment(request: UserRequest, pk: int) -> HttpResponseBase:
    """One file: lines, attribution and rejects."""
    visible = segments.with_sources(Segment.objects.visible_to(request.user).loaded())
    file = get_object_or_404(visible, pk=pk)
    reason = parameter(request, "reason")
    rejects = file.rejects.order_by("line")
    if reason:
        rejects = rejects.filter(reason=reason)
    if exports.requested_format(request):
        rows = rejects.values_list(*_REJECT_HEADER).iterator(_ROWS_AT_ONCE)
        about = {
            "segment": file.name,
            "simulated": file.simulated,
            "rejected_by_reason": file.rejected_by_reason,
        }
        return exports.response(request, f"segment-{pk}-rejects", about, _REJECT_HEADER, rows)
    return render(
        request,
        "ingest/segment.html",
        {
            **_frame("segments"),
            "segment": file,
            "attributed": attributed_operations(file),
            "reasons": sorted(file.rejected_by_reason.items(), key=lambda item: -item[1]),
            "reason": reason,
            "page": _page(request, rejects),
            "simulated": file.simulated,
        },
    )


@require_safe
@staff_only
@exports.accept("csv", "json")
def nids(request: UserRequest) -> HttpResponseBase:
    """Client NIDs without a registered node."""
    unregistered = segments.unregistered_nids()
    if text := parameter(request, "q"):
        unregistered = unregistered.filter(text__icontains=text)
    simulated = Filesystem.objects.filter(simulated=True).exists()
    if exports.requested_format(request):
        rows = ([nid] for nid in unregistered.values_list("text", flat=True)[:COUNTED].iterator())
        about = {"at_most": COUNTED, "simulated": simulated}
        return exports.response(request, "unregistered-nids", about, ["nid"], rows)
    return render(
        request,
        "ingest/nids.html",
        {
            **_frame("nids"),
            "page": _page(request, unregistered),
            "q": text,
            "simulated": simulated,
        },
    )


@require_safe
@staff_only
@exports.accept("csv", "json")
def pending(request: UserRequest) -> HttpResponseBase:
    """Job ids without an accounting record."""
    pending_ids = segments.pending_ids()
    if text := parameter(request, "q"):
        pending_ids = pending_ids.filter(text__icontains=text)
    if exports.requested_format(request):
        rows = map(_pending_row, segments.with_times(pending_ids[:COUNTED].iterator(_ROWS_AT_ONCE)))
        about = {"at_most": COUNTED}
        return exports.response(request, "pending-job-ids", about, _PENDING_HEADER, rows)
    page = _page(request, pending_ids)
    return render(
        request,
        "ingest/pending.html",
        {
            **_frame("pending"),
            "page": page,
            "rows": segments.with_times(page),
            "q": text,
            "simulated": any(job_id.filesystem.simulated for job_id in page),
        },
    )


def _frame(tab: str) -> dict[str, Any]:
    """Return the context of the tabs."""
    return {"section": "ingest", "tab": tab, "counts": segments.tab_counts()}


def _page(request: UserRequest, rows: QuerySet[Any]) -> Page[Any]:
    return CountedPaginator(rows, _PER_PAGE).get_page(request.GET.get("page"))


def _pending_row(pending: segments.PendingId) -> list[Any]:
    job_id = pending.job_id
    names = [job_id.text, job_id.batch_id, job_id.array_index, job_id.launch]
    filesystem = job_id.filesystem
    return [
        *names,
        filesystem.name,
        filesystem.simulated,
        pending.first,
        pending.last,
        pending.opens,
    ]
