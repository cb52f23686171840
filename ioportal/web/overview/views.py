"""The overview of the busiest jobs, processes and hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.exceptions import ValidationError
from django.http import Http404
from django.shortcuts import render
from django.views.decorators.http import conditional_page, require_safe

from ioportal.changes import mitigation_marks
from ioportal.web.common import exports
from ioportal.web.overview.metrics import SECTIONS
from ioportal.web.overview.page import OverviewPage
from ioportal.web.overview.query import OverviewQuery
from ioportal.web.overview.section import EXPORT_COLUMNS

if TYPE_CHECKING:
    from django.http import HttpResponseBase

    from ioportal.web.common.requests import UserRequest


@require_safe
def page(request: UserRequest) -> HttpResponseBase:
    """Show all sections of one range; a script refreshes the sections of a visible page."""
    overview = OverviewPage(request.user, request.GET)
    return render(request, "overview/page.html", {"section": "overview", "page": overview})


@require_safe
@conditional_page
@exports.accept("csv", "json")
def section(request: UserRequest, name: str) -> HttpResponseBase:
    """Show one section, the part of the page that is refreshed, or export it."""
    if name not in SECTIONS:
        raise Http404("There is no such section.")
    try:
        query = OverviewQuery.from_query(request.GET)
    except ValidationError as error:
        return exports.invalid_query({"range": error.messages})
    marks = mitigation_marks.for_servers(query.window, request.user)
    section = SECTIONS[name](query, request.user, marks)
    if exports.requested_format(request):
        about = section.about if exports.requested_format(request) == "json" else {}
        rows = section.export_rows()
        return exports.response(request, f"overview-{name}", about, EXPORT_COLUMNS, rows)
    return render(request, "overview/_section.html", {"section": section})
