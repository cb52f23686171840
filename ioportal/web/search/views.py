"""Search: one exact hit is gone to, several are listed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth.decorators import login_required
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from ioportal.web.common.requests import asked
from ioportal.web.search.search import PER_KIND, find, near

if TYPE_CHECKING:
    from django.http import HttpResponseBase

    from ioportal.web.common.requests import UserRequest


@require_safe
@login_required
def search(request: UserRequest) -> HttpResponseBase:
    """Everything that the words name."""
    text = asked(request, "q")
    hits = find(request.user, text)
    if len(hits) == 1:
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
