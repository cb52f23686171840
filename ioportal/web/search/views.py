"""Search: redirects to the page of a single hit, lists several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from ioportal.web.common.requests import parameter
from ioportal.web.search.search import PER_KIND, find, near

if TYPE_CHECKING:
    from django.http import HttpResponseBase

    from ioportal.web.common.requests import UserRequest


@require_safe
def search(request: UserRequest) -> HttpResponseBase:
    """Items by name."""
    text = parameter(request, "q")
    hits = find(request.user, text)
    if len(hits) == 1 and hits[0].url:
        return redirect(hits[0].url)
    return render(
        request,
        "search/results.html",
        {
            "searched": text,
            "hits": hits,
            "near": [] if hits else near(request.user, text),
            "per_kind": PER_KIND,
        },
    )
