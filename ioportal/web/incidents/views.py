"""Incidents: saved ones, impact analysis of a range, and problem reports of users."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from ioportal.core.visible_text import storable
from ioportal.load.models import Incident
from ioportal.site.models import Server
from ioportal.web.common import exports
from ioportal.web.common.requests import parameter
from ioportal.web.common.staff_only import staff_only
from ioportal.web.incidents.forms import IncidentForm, ReportForm, SaveForm
from ioportal.web.incidents.page import ImpactPage, IncidentListPage, IncidentPage
from ioportal.web.incidents.queue_page import NoQueue, QueuePage

if TYPE_CHECKING:
    from django.http import HttpResponseBase

    from ioportal.web.common.requests import UserRequest


@require_http_methods(["GET", "HEAD", "POST"])
@exports.accept("csv", "json")
def incident_list(request: UserRequest) -> HttpResponseBase:
    """List saved incidents and reports; a POST stores a report."""
    form = ReportForm(request.user, request.POST or None)
    if request.method == "POST" and form.is_valid():
        form.save()
        messages.success(request, "Report sent. Staff see it next to the server data of its time.")
        return redirect("incident_list")
    page = IncidentListPage(request.user, request.GET)
    if exports.requested_format(request):
        return exports.response(request, "incidents", {}, *page.saved.export)
    context = {"section": "incidents", "incidents": page, "form": form}
    return render(request, "incidents/list.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@exports.accept("csv", "json")
def incident(request: UserRequest, pk: int) -> HttpResponseBase:
    """Show a saved incident; staff may change or delete it with a POST."""
    incident = get_object_or_404(Incident.objects.select_related("server__filesystem"), pk=pk)
    form = IncidentForm(request.POST or None, instance=incident)
    if request.method == "POST":
        if not request.user.is_staff:
            raise PermissionDenied("Only staff may change an incident.")
        if "delete" in request.POST:
            incident.delete()
            messages.success(request, f"Incident deleted: {incident.title}")
            return redirect("incident_list")
        if form.is_valid():
            form.save()
            return redirect("incident", pk)
        incident.refresh_from_db()
    page = IncidentPage(incident, request.user)
    if exports.requested_format(request):
        rows = page.analysis.table.export
        return exports.response(request, f"incident-{pk}", page.about, *rows)
    address = request.build_absolute_uri(request.path)
    context = {"section": "incidents", "page": page, "form": form, "address": address}
    return render(request, "incidents/incident.html", context)


@require_POST
@staff_only
def save_incident(request: UserRequest) -> HttpResponseBase:
    """Save a range of a server as an incident."""
    form = SaveForm(request.user, request.POST)
    if form.is_valid():
        return redirect("incident", form.save().pk)
    for errors in form.errors.values():
        for error in errors:
            messages.error(request, str(error))
    return redirect("incident_list")


@require_safe
@staff_only
@exports.accept("csv", "json")
def impact_analysis(request: UserRequest) -> HttpResponseBase:
    """Show the impact analysis of a filesystem's metadata servers in a range."""
    page = ImpactPage(request.user, request.GET, parameter(request, "filesystem"))
    if exports.requested_format(request):
        if page.errors:
            return exports.invalid_query({"range": page.errors})
        return exports.response(request, "impact-analysis", page.about, *page.export)
    return render(request, "incidents/impact.html", {"section": "incidents", "page": page})


@require_safe
@staff_only
@exports.accept("csv", "json")
def request_times(request: UserRequest, server: str) -> HttpResponseBase:
    """Export the request times of a metadata server."""
    page = ImpactPage(request.user, request.GET, parameter(request, "filesystem"))
    if page.errors:
        return exports.invalid_query({"range": page.errors})
    get_object_or_404(Server, name=storable(server))
    about = {"server": server, "simulated": page.simulated}
    chart = page.charts.get(server)
    if chart is None:
        return exports.response(request, f"{server}-request-times", about, [], [])
    about["unit"] = chart.chart.unit
    return exports.response(request, f"{server}-request-times", about, chart.header, chart.rows())


@require_safe
@exports.accept("csv", "json")
def queue(request: UserRequest, server: str) -> HttpResponseBase:
    """Show a queue of a metadata server by second, with and without one of its groups."""
    servers = Server.objects.select_related("filesystem").filter(kind=Server.Kind.MDS)
    where = get_object_or_404(servers, name=storable(server))
    try:
        page = QueuePage(request.user, where, request.GET)
    except ValidationError as error:
        if exports.requested_format(request):
            return exports.invalid_query({"range": error.messages})
        raise Http404(" ".join(error.messages)) from error
    except NoQueue as reason:
        if exports.requested_format(request):
            raise
        context = {"section": "incidents", "server": where, "reason": str(reason)}
        return render(request, "incidents/no_queue.html", context, status=404)
    if exports.requested_format(request):
        rows = page.export_rows()
        return exports.response(request, f"{server}-queue", page.about, page.columns, rows)
    return render(request, "incidents/queue.html", {"section": "incidents", "page": page})
