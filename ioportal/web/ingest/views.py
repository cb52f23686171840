"""Ingested files, unregistered NIDs and pending job ids."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from ioportal.core.units import Unit
from ioportal.ingest.models import Segment
from ioportal.ingest.reconciliation.comparing import attributed_operations
from ioportal.site.models import Filesystem
from ioportal.web.common import exports
from ioportal.web.common.pagination import COUNTED, CountedPaginator
from ioportal.web.common.requests import parameter
from ioportal.web.common.staff_only import staff_only
from ioportal.web.common.tables import Column, Table, included, to
from ioportal.web.ingest import segments
from ioportal.web.templatetags import ioportal as show

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpResponseBase

    from ioportal.ingest.models import Reject
    from ioportal.site.models import SourceJobId
    from ioportal.web.common.requests import UserRequest
    from ioportal.web.ingest.segments import PendingId

_PER_PAGE = 50


def _bad_if_rejected(segment: Any) -> str:
    return "bad" if segment.rejected else ""


_SEGMENTS: tuple[Column[Any], ...] = (  # see `segments.with_sources`
    Column("id", "", "pk"),
    Column("simulated", ""),
    Column(
        "",
        "Name",
        "name",
        form=show.file_name,
        link=to("segment", "pk"),
        hint=lambda segment: show.visible(segment.name),
        note=lambda segment: "simulated" if segment.simulated else "",
        css="file",
    ),
    Column("format", "Format", hint="format_label"),
    Column("name", ""),
    Column(
        "", "Source", "pk", cell=lambda segment: included("ingest/_source.html", segment=segment)
    ),
    Column("start", "First record"),
    Column("end", "Last record"),
    Column("lines", "Lines", unit=""),
    Column("accepted", "Accepted", unit=""),
    Column("rejected", "Rejected", unit="", css=_bad_if_rejected),
    Column("irrelevant", "Irrelevant", unit=""),
    Column("records", ""),
    Column(
        "rpcs",
        "RPCs",
        unit="",
        about="Traces only. For increases of counters, see the page of the file.",
    ),
    Column("loaded_at", "Loaded"),
)
_PENDING: tuple[Column[PendingId], ...] = (
    Column("id", "Id", "job_id__text", form=show.code),
    Column("", "Interpreted as", lambda pending: _meaning(pending.job_id)),
    Column("batch_id", "", "job_id__batch_id"),
    Column("array_index", "", "job_id__array_index"),
    Column("launch", "", "job_id__launch"),
    Column("filesystem", "Filesystem", "job_id__filesystem__name"),
    Column("simulated", "", "job_id__filesystem__simulated"),
    Column("first_counted", "First counted", "first"),
    Column("last_counted", "Last counted", "last"),
    Column("opens", "Opens", unit=Unit.COUNT),
)
_REJECTS: tuple[Column[Reject], ...] = (
    Column("line", "Line", unit=""),
    Column("reason", "Reason", css="wrap"),
    Column("text", "Text", form=show.code, css="wrap"),
)


def _meaning(job_id: SourceJobId) -> str:
    task = f"[{job_id.array_index}]" if job_id.array_index else ""
    job = f"job {job_id.batch_id}{task}" if job_id.batch_id else ""
    return " ".join(filter(None, (job, f"launch {job_id.launch}" if job_id.launch else "")))


@require_safe
@staff_only
@exports.accept("csv", "json")
def segment_list(request: UserRequest) -> HttpResponseBase:
    """Ingested files, latest first."""
    selection = segments.SegmentFilter(
        request.GET, queryset=Segment.objects.visible_to(request.user)
    )
    is_export = exports.requested_format(request)
    if is_export and not selection.is_valid():
        return exports.invalid_query(selection.errors)
    is_valid = selection.is_valid()
    files = selection.qs.order_by("-loaded_at", "-pk") if is_valid else Segment.objects.none()
    table = _table(request, "Ingested files", _SEGMENTS, segments.with_sources(files))
    if is_export:
        return exports.response(request, "segments", {"at_most": COUNTED}, *table.export)
    simulated = [segment.simulated for segment in table.page]
    context = {
        **segments.tabs("segments"),
        "filter": selection,
        "table": table,
        "simulated": any(simulated),
        "all_simulated": simulated and all(simulated),
    }
    return render(request, "ingest/segments.html", context)


@require_safe
@staff_only
@exports.accept("csv", "json")
def segment(request: UserRequest, pk: int) -> HttpResponseBase:
    """One file: lines, attribution and rejects."""
    visible = segments.with_sources(Segment.objects.visible_to(request.user))
    file = get_object_or_404(visible, pk=pk)
    reason = parameter(request, "reason")
    rejects = file.rejects.order_by("line")
    if reason:
        rejects = rejects.filter(reason=reason)
    table = _table(request, "Rejected lines", _REJECTS, rejects)
    if exports.requested_format(request):
        about = {
            "segment": file.name,
            "simulated": file.simulated,
            "rejected_by_reason": file.rejected_by_reason,
        }
        return exports.response(request, f"segment-{pk}-rejects", about, *table.export)
    return render(
        request,
        "ingest/segment.html",
        {
            **segments.tabs("segments"),
            "segment": file,
            "attributed": attributed_operations([file]),
            "reasons": sorted(file.rejected_by_reason.items(), key=lambda item: -item[1]),
            "reason": reason,
            "table": table,
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
            **segments.tabs("nids"),
            "page": CountedPaginator(unregistered, _PER_PAGE).get_page(request.GET.get("page")),
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
    table = replace(
        _table(request, "Pending job ids", _PENDING, pending_ids), look_up=segments.with_times
    )
    if exports.requested_format(request):
        return exports.response(request, "pending-job-ids", {"at_most": COUNTED}, *table.export)
    context = {
        **segments.tabs("pending"),
        "table": table,
        "q": text,
        "simulated": any(job_id.filesystem.simulated for job_id in table.page),
    }
    return render(request, "ingest/pending.html", context)


def _table(request: UserRequest, title: str, columns: Any, rows: QuerySet[Any]) -> Table[Any]:
    return Table(title, columns, rows, query=request.GET, per_page=_PER_PAGE)
