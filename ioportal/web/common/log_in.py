"""Responses to expired sessions and throttled log-ins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import HttpResponseRedirect
from django.shortcuts import render, resolve_url
from django_htmx.http import HttpResponseClientRedirect
from django_htmx.middleware import HtmxDetails

from ioportal.core.throttling.counters import TooManyAttempts

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse, HttpResponseBase


class LogInAsPage:
    """Middleware: redirect htmx to the log-in after the end of a session.

    By itself, htmx would follow the redirect and insert the log-in into the page. The log-in leads
    back to the page, not to the requested part.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Replace redirects of htmx requests to the log-in."""
        response = self._get_response(request)
        if (
            isinstance(response, HttpResponseRedirect)
            and "HX-Request" in request.headers
            and response.url.startswith(resolve_url(settings.LOGIN_URL))
        ):
            return HttpResponseClientRedirect(_back_to_page(request) or response.url)
        return response


def _back_to_page(request: HttpRequest) -> str | None:
    """Return the log-in that leads back to the page of a requested part; None: a boosted link."""
    htmx = HtmxDetails(request)
    page = None if htmx.boosted else htmx.current_url_abs_path
    return redirect_to_login(page).url if page else None


class ThrottledLogIn:
    """Middleware: the response to too many log-in attempts, here or in the admin pages."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Pass on the request."""
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, refusal: Exception) -> HttpResponse | None:
        """Respond to `TooManyAttempts`."""
        if not isinstance(refusal, TooManyAttempts):
            return None
        response = render(request, "429.html", {"wait_s": refusal.retry_after_s}, status=429)
        response["Retry-After"] = str(refusal.retry_after_s)
        return response
