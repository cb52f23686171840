"""The job list and its twins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth.decorators import login_required
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from ioportal.web.common import exports
from ioportal.web.common.pagination import COUNTED
from ioportal.web.jobs.job_list import Listing

if TYPE_CHECKING:
    from django.http import HttpResponseBase

    from ioportal.web.common.requests import UserRequest


@require_safe
@login_required
@exports.offered("csv", "json")
def job_list(request: UserRequest) -> HttpResponseBase:
    """Jobs by filters, sorted by any column."""
    listing = Listing(request.user, request.GET)
    if exports.asked_format(request):
        if errors := listing.errors:
            return exports.refuse(errors)
        header = ["id", "simulated", *(column.name for column in listing.columns)]
        about = {"sort": listing.sort, "at_most": COUNTED}
        return exports.twin(request, "jobs", about, header, listing.values())
    if not listing.is_short:
        return redirect(f"{request.path}{listing.short_url}".removesuffix("?"))
    return render(request, "jobs/list.html", {"listing": listing, "section": "jobs"})
