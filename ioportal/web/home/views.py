"""The home page, the servers under observation, and the export of the metadata load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from ioportal.findings import server_states, slow_servers
from ioportal.web.common import exports
from ioportal.web.common.requests import parameter
from ioportal.web.common.staff_only import staff_only
from ioportal.web.home.load import EXPORT_COLUMNS
from ioportal.web.home.page import JOB_COLUMNS, StaffHome, UserHome

if TYPE_CHECKING:
    from django.http import HttpResponseBase

    from ioportal.web.common.requests import UserRequest


@require_safe
def home(request: UserRequest) -> HttpResponseBase:
    """Show the site at a glance to staff, and their own jobs to users."""
    context: dict[str, Any] = {"section": "home", "columns": JOB_COLUMNS}
    if request.user.is_staff:
        context["home"] = StaffHome(request.user, request.GET)
        return render(request, "home/staff.html", context)
    return render(request, "home/user.html", context | {"home": UserHome(request.user)})


@require_safe
@staff_only
def now(request: UserRequest) -> HttpResponseBase:
    """Show the refreshed parts of the home page, or of a server's page."""
    if name := parameter(request, "server"):
        states = server_states.of_server(request.user, name)
        return render(request, "servers/_now.html", {"name": name, "states": states})
    return render(request, "home/_refresh.html", {"home": StaffHome(request.user, request.GET)})


@require_safe
@exports.accept("csv", "json")
def observed(request: UserRequest) -> HttpResponseBase:
    """Show or export the slow servers under observation."""
    listed = slow_servers.current(request.user)
    if exports.requested_format(request):
        rows = (row for each in listed for row in each.rows())
        return exports.response(request, "observed", {}, slow_servers.COLUMNS, rows)
    if "HX-Request" not in request.headers:  # it is a part of these pages
        return redirect("home")
    return render(request, "common/observed.html", {"observed": listed})


@require_safe
@staff_only
@exports.accept("csv", "json")
def load(request: UserRequest) -> HttpResponseBase:
    """Export the metadata load of the home page."""
    home = StaffHome(request.user, request.GET)
    if home.range_errors:
        return exports.invalid_query({"range": home.range_errors})
    load = home.load
    return exports.response(
        request, "metadata-load", load.about, EXPORT_COLUMNS, load.export_rows()
    )
