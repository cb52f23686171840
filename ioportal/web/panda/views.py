"""The list of PanDA jobs, and the page of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.shortcuts import render
from django.views.decorators.http import require_safe

from ioportal.web.common import exports
from ioportal.web.panda.page import HEADER, PandaJobList, PandaJobPage

if TYPE_CHECKING:
    from django.http import HttpResponseBase

    from ioportal.web.common.requests import UserRequest


@require_safe
@exports.accept("csv", "json")
def panda_list(request: UserRequest) -> HttpResponseBase:
    """PanDA jobs by filters."""
    listing = PandaJobList(request.user, request.GET)
    if not exports.requested_format(request):
        return render(request, "panda/list.html", {"section": "jobs", "listing": listing})
    if errors := listing.filter.errors:
        return exports.invalid_query(errors)
    about = {"simulated": listing.simulated}
    return exports.response(request, "panda-jobs", about, HEADER, listing.values())


@require_safe
@exports.accept("json")
def panda_job(request: UserRequest, cluster: str, panda_id: int) -> HttpResponseBase:
    """PanDA's record of a job, and the figures of its batch job."""
    page = PandaJobPage(request.user, cluster, panda_id)
    if exports.requested_format(request):
        return exports.json_response(page.facts)
    return render(request, "panda/job.html", {"section": "jobs", "page": page})
