"""The ranking of users, projects, applications, queues, jobs and PanDA tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.shortcuts import render
from django.views.decorators.http import require_safe

from ioportal.web.common import exports
from ioportal.web.ranking.page import COUNTING, RankingPage

if TYPE_CHECKING:
    from django.http import HttpResponseBase

    from ioportal.web.common.requests import UserRequest


@require_safe
@exports.accept("csv", "json")
def ranking(request: UserRequest) -> HttpResponseBase:
    """Rank the subjects of selected jobs by a figure."""
    page = RankingPage(request.user, request.GET)
    if not exports.requested_format(request):
        context = {"section": "ranking", "page": page, "counting": COUNTING}
        return render(request, "ranking/page.html", context)
    if page.errors:
        return exports.invalid_query(page.errors)
    about = {
        "title": page.title,
        "unit": page.unit,
        "counting": COUNTING,
        "pending_statistics": page.pending_statistics,
        "simulated": page.simulated,
    }
    return exports.response(request, "ranking", about, *page.exported.export)
