"""Who is on top now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import Http404, QueryDict
from django.shortcuts import render
from django.views.decorators.http import conditional_page, require_safe

from ioportal.reporting.principals import BYS
from ioportal.web.common import exports
from ioportal.web.overview import query
from ioportal.web.overview.metrics import SECTIONS
from ioportal.web.overview.query import Asked

if TYPE_CHECKING:
    from django.http import HttpResponseBase

    from ioportal.web.common.requests import UserRequest
    from ioportal.web.overview.section import Section

_HEADER = ["source", "start", "end", "principal", "per_second"]


@require_safe
@login_required
def page(request: UserRequest) -> HttpResponseBase:
    """Every metric in one range; the page's script asks for the sections again while it is seen."""
    refused: list[str] = []
    try:
        asked = Asked.of(request.GET)
    except ValidationError as error:
        refused = error.messages
        asked = Asked.of(QueryDict())
    shown = {
        "section": "overview",
        "asked": asked,
        "window": asked.window,
        "refused": refused,
        "lasts": query.LASTS,
        "bys": BYS,
        "refresh_s": query.REFRESH_S,
        "sections": [section(asked, request.user) for section in SECTIONS.values()],
        "is_registered": query.is_registered(),
        "is_empty": query.newest_data() is None,
        "simulated": query.is_simulated(),
    }
    return render(request, "overview/page.html", shown)


@require_safe
@login_required
@conditional_page
@exports.offered("csv", "json")
def section(request: UserRequest, name: str) -> HttpResponseBase:
    """One metric: the part of the page that is refreshed, and its twins."""
    if name not in SECTIONS:
        raise Http404("There is no such section.")
    try:
        asked = Asked.of(request.GET)
    except ValidationError as error:
        return exports.refuse({"range": error.messages})
    found = SECTIONS[name](asked, request.user)
    if exports.asked_format(request) == "json":
        rows = [dict(zip(_HEADER, row, strict=True)) for row in found.twin()]
        return exports.json_response({**_about(found), "rows": rows})
    if exports.asked_format(request) == "csv":
        return exports.twin(request, f"overview-{name}", {}, _HEADER, found.twin())
    return render(request, "overview/_section.html", {"section": found, "asked": asked})


def _about(section: Section) -> dict[str, object]:
    """Return what is said besides the rates: the range, and who is on top."""
    return {
        "start": section.window.start,
        "end": section.window.end,
        "unit": section.unit,
        "bin_s": section.bin.total_seconds(),
        "observed_s": section.observed_s,
        "attributed_s": section.attributed_s,
        "pending_s": section.pending_s,
        "simulated": query.is_simulated(),
        "top": [
            {
                "principal": one.words,
                "nodes": one.nodes or None,
                "newest_per_second": one.newest,
                "newest_per_second_and_node": one.newest_per_node,
                "mean_per_second": one.mean,
                "share": one.share,
            }
            for one in section.listed
        ],
    }
