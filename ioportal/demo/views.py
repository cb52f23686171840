"""Pages of the demo for staff: the tour, its dismissal, and the mailbox."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, TypeVar

from django.conf import settings
from django.http import Http404
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from ioportal.demo import mailbox, tour
from ioportal.web.mails.answers import isolated

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpResponse

    from ioportal.demo.mailbox import Received
    from ioportal.web.common.requests import UserRequest

T = TypeVar("T")

DISMISSED = "tour_dismissed"  # cookie
_YEAR_S = 365 * 86_400


def _for_staff_of_demo(view: Callable[..., T]) -> Callable[..., T]:
    """Hide a view from others than staff, and without a demo."""

    @wraps(view)
    def checked(request: UserRequest, **named: str) -> T:
        if not settings.DEMO or not request.user.is_staff:
            raise Http404("This portal has no demo.")
        return view(request, **named)

    return checked


@require_http_methods(["GET", "HEAD", "POST"])
@_for_staff_of_demo
def tour_page(request: UserRequest) -> HttpResponse:
    """Show the tour; a POST dismisses its card on the home page."""
    if request.method == "POST":
        response = redirect("home")
        response.set_cookie(
            DISMISSED, "yes", _YEAR_S, secure=settings.SESSION_COOKIE_SECURE, samesite="Lax"
        )
        return response
    return render(request, "demo/tour.html", {"section": "home", "stops": tour.stops()})


@require_safe
@_for_staff_of_demo
def mailbox_page(request: UserRequest) -> HttpResponse:
    """List the mails that the demo's mail server received."""
    return render(request, "demo/mailbox.html", {"section": "mails", "mails": mailbox.latest()})


@require_safe
@_for_staff_of_demo
def received_mail(request: UserRequest, key: str) -> HttpResponse:
    """Show a mail as its recipient got it."""
    return render(request, "demo/mail.html", {"section": "mails", "mail": _mail(key)})


@isolated
@_for_staff_of_demo
def received_html(_request: UserRequest, key: str) -> str:
    """Return the HTML of a received mail."""
    return _mail(key).html


def _mail(key: str) -> Received:
    mail = mailbox.received(key)
    if mail is None:
        raise Http404("There is no such mail.")
    return mail
