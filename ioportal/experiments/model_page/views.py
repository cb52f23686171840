"""The what-if page of latency and bandwidth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.shortcuts import render
from django.views.decorators.http import require_safe

from ioportal.experiments.model_page.page import ModelPage
from ioportal.web.common import exports

if TYPE_CHECKING:
    from django.http import HttpResponseBase

    from ioportal.web.common.requests import UserRequest


@require_safe
@exports.accept("csv", "json")
def model(request: UserRequest) -> HttpResponseBase:
    """Show or export predicted times of loads."""
    page = ModelPage(request.user, request.GET)
    if exports.requested_format(request):
        return exports.response(request, "model", page.about, *page.parts[0].export)
    return render(request, "model/page.html", {"section": "model", "page": page})
