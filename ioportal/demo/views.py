"""The tour of the demo as a page, and its dismissal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.http import Http404
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from ioportal.demo import tour

if TYPE_CHECKING:
    from django.http import HttpResponse

    from ioportal.web.common.requests import UserRequest

DISMISSED = "tour_dismissed"  # cookie
_YEAR_S = 365 * 86_400


@require_http_methods(["GET", "HEAD", "POST"])
def tour_page(request: UserRequest) -> HttpResponse:
    """Show the tour; a POST dismisses its card on the home page."""
    if not settings.DEMO or not request.user.is_staff:
        raise Http404("This portal has no tour.")
    if request.method == "POST":
        response = redirect("home")
        response.set_cookie(
            DISMISSED, "yes", _YEAR_S, secure=settings.SESSION_COOKIE_SECURE, samesite="Lax"
        )
        return response
    return render(request, "demo/tour.html", {"section": "home", "stops": tour.stops()})
