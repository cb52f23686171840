"""Servers: the list, and the services, clients and charts of one server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from ioportal.core.visible_text import storable
from ioportal.load.top_clients import MAX_CLIENTS
from ioportal.site.models import Server
from ioportal.web.common import exports
from ioportal.web.common.requests import parameter
from ioportal.web.common.staff_only import staff_only
from ioportal.web.servers.capacity import CapacityPage
from ioportal.web.servers.page import ServerPage, server_table

if TYPE_CHECKING:
    from django.http import HttpResponseBase

    from ioportal.web.common.requests import UserRequest


@require_safe
@staff_only
@exports.accept("csv", "json")
def server_list(request: UserRequest) -> HttpResponseBase:
    """List all servers with their latest data."""
    table = server_table()
    if exports.requested_format(request):
        return exports.response(request, "servers", {}, *table.export)
    simulated = any(row.server.filesystem.simulated for row in table.rows)
    context = {"section": "servers", "table": table, "simulated": simulated}
    return render(request, "servers/list.html", context)


@require_safe
@staff_only
@exports.accept("csv", "json")
def server(request: UserRequest, name: str) -> HttpResponseBase:
    """Show one server: its services and clients, and charts of all services or of one."""
    page = _page(request, name)
    if exports.requested_format(request):
        if page.errors:
            return exports.invalid_query({"range": page.errors})
        name = f"{page.server.name}-services"
        return exports.response(request, name, page.about, *page.services.export)
    return render(request, "servers/detail.html", {"section": "servers", "page": page})


@require_safe
@staff_only
@exports.accept("csv", "json")
def clients(request: UserRequest, name: str) -> HttpResponseBase:
    """Export the top clients of a server."""
    page = _page(request, name)
    if page.errors:
        return exports.invalid_query({"range": page.errors})
    about = {**page.about, "at_most": MAX_CLIENTS}
    return exports.response(request, f"{page.server.name}-clients", about, *page.clients.export)


@require_safe
@staff_only
@exports.accept("csv", "json")
def chart(request: UserRequest, name: str, chart: str) -> HttpResponseBase:
    """Export one chart."""
    page = _page(request, name)
    if page.errors:
        return exports.invalid_query({"range": page.errors})
    steps = page.chart(chart)
    about = page.about_chart(steps)
    return exports.response(
        request, f"{page.server.name}-{chart}", about, steps.header, steps.rows()
    )


@require_safe
@staff_only
@exports.accept("csv", "json")
def capacity(request: UserRequest, name: str) -> HttpResponseBase:
    """Show how much load a metadata server carries, and how much is left."""
    page = _capacity_page(request, name)
    if exports.requested_format(request):
        if page.errors:
            return exports.invalid_query({"range": page.errors})
        return exports.response(
            request, f"{name}-capacity", page.about, ("figure", "value"), page.export_rows
        )
    return render(request, "servers/capacity.html", {"section": "servers", "page": page})


@require_safe
@staff_only
@exports.accept("csv", "json")
def capacity_chart(request: UserRequest, name: str, chart: str) -> HttpResponseBase:
    """Export one chart of the capacity page."""
    page = _capacity_page(request, name)
    if page.errors:
        return exports.invalid_query({"range": page.errors})
    header, rows = page.export(chart)
    return exports.response(request, f"{name}-capacity-{chart}", page.about, header, rows)


def _capacity_page(request: UserRequest, name: str) -> CapacityPage:
    servers = Server.objects.select_related("filesystem").filter(kind=Server.Kind.MDS)
    server = get_object_or_404(servers, name=storable(name))
    return CapacityPage(server, request.GET)


def _page(request: UserRequest, name: str) -> ServerPage:
    servers = Server.objects.select_related("filesystem")
    server = get_object_or_404(servers, name=storable(name))
    return ServerPage(server, request.user, request.GET, parameter(request, "service"))
