"""Incidents: busy or harmful, what staff keep of it, and what users report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.paginator import Paginator
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from ioportal.activity.models import Incident, Report
from ioportal.analysis.impact import MIN_BASELINE_WINDOWS
from ioportal.analysis.metrics import Unit
from ioportal.reporting.formatting import duration
from ioportal.reporting.time_ranges import TimeRange
from ioportal.site.models import Filesystem
from ioportal.web.common import exports
from ioportal.web.common.access import staff_only
from ioportal.web.common.requests import parameter
from ioportal.web.incidents import page as incidents
from ioportal.web.incidents.forms import IncidentForm, KeepForm, ReportForm

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from django.http import HttpResponseBase, QueryDict

    from ioportal.web.common.requests import UserRequest

_LISTED = 25
_HEADER = ("id", "server", "filesystem", "start", "end")
_OF_STAFF = ("title", "kept_by", "kept_at")


@require_http_methods(["GET", "HEAD", "POST"])
@exports.accept("csv", "json")
def incident_list(request: UserRequest) -> HttpResponseBase:
    """All incidents that were kept, and reports of users; posted, a report is stored."""
    form = ReportForm(request.user, request.POST or None)
    if request.method == "POST" and form.is_valid():
        form.save()
        messages.success(request, "Thank you: staff see your report beside what servers did then.")
        return redirect("incident_list")
    kept = Incident.objects.select_related("server__filesystem")
    if exports.requested_format(request):
        header = (*_HEADER, *(_OF_STAFF if request.user.is_staff else ()))
        rows = ([_fact(one, name) for name in header] for one in kept.iterator())
        return exports.response(request, "incidents", {}, header, rows)
    reports = Report.objects.visible_to(request.user).select_related("filesystem", "reporter")
    if request.user.is_staff:
        reports = reports.without_incident()
    return render(
        request,
        "incidents/list.html",
        {
            "section": "incidents",
            "page": Paginator(kept, _LISTED).get_page(parameter(request, "page")),
            "form": form,
            "reports": _with_incidents(reports[:_LISTED]),
            "suggested": incidents.suggested() if request.user.is_staff else [],
            "simulated": Filesystem.objects.filter(simulated=True).exists(),
        },
    )


def _fact(one: Incident, name: str) -> object:
    facts = {"server": one.server.name, "filesystem": one.server.filesystem.name}
    return facts.get(name) or getattr(one, name)


def _with_incidents(reports: Iterable[Report]) -> list[tuple[Report, list[Incident]]]:
    """Return reports, each with the incidents that it belongs to."""
    found = list(reports)
    if not found:
        return []
    times = [report.at for report in found]
    kept = Incident.objects.select_related("server").filter(
        start__lte=max(times) + Report.EARLY, end__gt=min(times) - Report.LATE
    )
    around = list(kept)
    return [(one, [each for each in around if one.belongs_to(each)]) for one in found]


@require_http_methods(["GET", "HEAD", "POST"])
@exports.accept("csv", "json")
def incident(request: UserRequest, pk: int) -> HttpResponseBase:
    """One incident that was kept; posted by staff, it is changed or forgotten."""
    kept = get_object_or_404(Incident.objects.select_related("server__filesystem"), pk=pk)
    form = IncidentForm(request.POST or None, instance=kept)
    if request.method == "POST":
        if not request.user.is_staff:
            raise PermissionDenied("Only staff may change an incident.")
        if "delete" in request.POST:
            kept.delete()
            messages.success(request, f"{kept.title} is forgotten.")
            return redirect("incident_list")
        if form.is_valid():
            form.save()
            return redirect("incident", pk)
        kept.refresh_from_db()
    examined = incidents.of_incident(kept, request.user)
    reports = _reports(request, kept.server.filesystem_id, kept.start, kept.end)
    if exports.requested_format(request):
        about = {name: _fact(kept, name) for name in _HEADER}
        if request.user.is_staff:
            about |= {name: _fact(kept, name) for name in (*_OF_STAFF, "notes")}
        about |= {"simulated": kept.server.filesystem.simulated, **examined.about}
        about["reports"] = [_told(report) for report in reports]
        return exports.response(request, f"incident-{pk}", about, incidents.HEADER, examined.rows())
    return render(
        request,
        "incidents/incident.html",
        {
            "section": "incidents",
            "kept": kept,
            "filesystem": kept.server.filesystem,
            "form": form,
            "incident": examined,
            "reports": reports,
            "address": request.build_absolute_uri(request.path),
            "fewest": MIN_BASELINE_WINDOWS,
            "microseconds": Unit.MICROSECONDS,
            "simulated": kept.server.filesystem.simulated,
        },
    )


def _reports(
    request: UserRequest, filesystem: int, start: datetime, end: datetime
) -> Iterable[Report]:
    visible = Report.objects.visible_to(request.user).about(filesystem, start, end)
    return visible.select_related("reporter", "filesystem")


def _told(report: Report) -> dict[str, object]:
    who = report.reporter.get_username()
    return {"at": report.at, "words": report.words, "reporter": who}


@require_POST
@staff_only
def keep(request: UserRequest) -> HttpResponseBase:
    """Keep an interval of a server as an incident."""
    form = KeepForm(request.user, request.POST)
    if form.is_valid():
        return redirect("incident", form.save().pk)
    for errors in form.errors.values():
        for error in errors:
            messages.error(request, str(error))
    return redirect("incident_list")


@require_safe
@staff_only
@exports.accept("csv", "json")
def incident_range(request: UserRequest) -> HttpResponseBase:
    """Who made others wait at a filesystem in a range, and when its servers were slow."""
    filesystems = list(Filesystem.objects.order_by("name"))
    wanted = parameter(request, "filesystem")
    filesystem = (
        get_object_or_404(Filesystem, name=wanted) if wanted else next(iter(filesystems), None)
    )
    default = incidents.default_range(filesystem) if filesystem else None
    refused: list[str] = []
    shown = None
    reports: Iterable[Report] = []
    if filesystem and default:
        try:
            window = _window(request.GET, default)
        except ValidationError as error:
            window, refused = default, error.messages
        shown = incidents.of_filesystem(filesystem, window, request.user)
        reports = _reports(request, filesystem.pk, window.start, window.end)
    if exports.requested_format(request) and refused:
        return exports.invalid_query({"range": refused})
    if exports.requested_format(request):
        about = (
            {"filesystem": filesystem.name, "simulated": filesystem.simulated, **shown.about}
            if filesystem and shown
            else {}
        )
        rows = shown.rows() if shown else []
        return exports.response(request, "busy-or-harmful", about, incidents.HEADER, rows)
    return render(
        request,
        "incidents/range.html",
        {
            "section": "incidents",
            "filesystems": filesystems,
            "filesystem": filesystem,
            "incident": shown,
            "reports": reports,
            "refused": refused,
            "fewest": MIN_BASELINE_WINDOWS,
            "microseconds": Unit.MICROSECONDS,
            "simulated": bool(shown and filesystem and filesystem.simulated),
        },
    )


def _window(query: QueryDict, default: TimeRange) -> TimeRange:
    window = TimeRange.from_query(query, default)
    if window.end - window.start > incidents.LONGEST:
        longest = duration(incidents.LONGEST.total_seconds())
        raise ValidationError(f"The range is longer than {longest}: choose a part of it.")
    return window
