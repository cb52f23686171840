"""What was loaded, what was refused, and what waits for a name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from ioportal.ingest.models import Segment
from ioportal.ingest.reconciliation import attributed_operations
from ioportal.site.models import Filesystem
from ioportal.web.common import exports
from ioportal.web.common.access import staff_only
from ioportal.web.common.pagination import COUNTED, CountedPaginator
from ioportal.web.common.requests import asked
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
@exports.offered("csv", "json")
def segment_list(request: UserRequest) -> HttpResponseBase:
    """Segments, newest first."""
    chosen = segments.SegmentFilter(
        request.GET, queryset=Segment.objects.visible_to(request.user).loaded()
    )
    is_twin = exports.asked_format(request)
    if is_twin and not chosen.is_valid():
        return exports.refuse(chosen.errors)
    found = chosen.qs.order_by("-loaded_at", "-pk") if chosen.is_valid() else Segment.objects.none()
    if is_twin:
        rows = segments.described(found).values_list(*_SEGMENT_HEADER)[:COUNTED]
        about = {"at_most": COUNTED}
        return exports.twin(
            request, "segments", about, _SEGMENT_HEADER, rows.iterator(_ROWS_AT_ONCE)
        )
    page = _page(request, segments.with_sources(found))
    return render(
        request,
        "ingest/segments.html",
        {
            **_frame("segments"),
            "filter": chosen,
            "page": page,
            "simulated": any(segment.simulated for segment in page),
            "all_simulated": page and all(segment.simulated for segment in page),
        },
    )


@require_safe
@staff_only
@exports.offered("csv", "json")
def segment(request: UserRequest, pk: int) -> HttpResponseBase:
    """One segment: its account, where its operations went, and the lines that were refused."""
    known = segments.with_sources(Segment.objects.visible_to(request.user).loaded())
    shown = get_object_or_404(known, pk=pk)
    reason = asked(request, "reason")
    rejects = shown.rejects.order_by("line")
    if reason:
        rejects = rejects.filter(reason=reason)
    if exports.asked_format(request):
        rows = rejects.values_list(*_REJECT_HEADER).iterator(_ROWS_AT_ONCE)
        about = {
            "segment": shown.name,
            "simulated": shown.simulated,
            "rejected_by_reason": shown.rejected_by_reason,
        }
        return exports.twin(request, f"segment-{pk}-rejects", about, _REJECT_HEADER, rows)
    return render(
        request,
        "ingest/segment.html",
        {
            **_frame("segments"),
            "segment": shown,
            "attributed": attributed_operations(shown),
            "reasons": sorted(shown.rejected_by_reason.items(), key=lambda item: -item[1]),
            "reason": reason,
            "page": _page(request, rejects),
            "simulated": shown.simulated,
        },
    )


@require_safe
@staff_only
@exports.offered("csv", "json")
def nids(request: UserRequest) -> HttpResponseBase:
    """NIDs that are no node's."""
    found = segments.unregistered_nids()
    if word := asked(request, "q"):
        found = found.filter(text__icontains=word)
    simulated = Filesystem.objects.filter(simulated=True).exists()
    if exports.asked_format(request):
        rows = ([text] for text in found.values_list("text", flat=True)[:COUNTED].iterator())
        about = {"at_most": COUNTED, "simulated": simulated}
        return exports.twin(request, "unregistered-nids", about, ["nid"], rows)
    return render(
        request,
        "ingest/nids.html",
        {
            **_frame("nids"),
            "page": _page(request, found),
            "q": word,
            "simulated": simulated,
        },
    )


@require_safe
@staff_only
@exports.offered("csv", "json")
def pending(request: UserRequest) -> HttpResponseBase:
    """Job ids that no accounting has named yet."""
    found = segments.pending_ids()
    if word := asked(request, "q"):
        found = found.filter(text__icontains=word)
    if exports.asked_format(request):
        rows = map(_pending_row, segments.seen(found[:COUNTED].iterator(_ROWS_AT_ONCE)))
        about = {"at_most": COUNTED}
        return exports.twin(request, "pending-job-ids", about, _PENDING_HEADER, rows)
    page = _page(request, found)
    return render(
        request,
        "ingest/pending.html",
        {
            **_frame("pending"),
            "page": page,
            "rows": segments.seen(page),
            "q": word,
            "simulated": any(job_id.filesystem.simulated for job_id in page),
        },
    )


def _frame(tab: str) -> dict[str, Any]:
    """Return what every ingest page shows around its own matter."""
    return {"section": "ingest", "tab": tab, "waiting": segments.waiting()}


def _page(request: UserRequest, rows: QuerySet[Any]) -> Page[Any]:
    return CountedPaginator(rows, _PER_PAGE).get_page(request.GET.get("page"))


def _pending_row(seen: segments.Seen) -> list[Any]:
    job_id = seen.job_id
    names = [job_id.text, job_id.batch_id, job_id.array_index, job_id.launch]
    filesystem = job_id.filesystem
    return [*names, filesystem.name, filesystem.simulated, seen.first, seen.last, seen.opens]
