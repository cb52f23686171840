"""Access to pages: staff only, expired sessions, throttled log-ins."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpResponseRedirect
from django.shortcuts import render, resolve_url
from django_htmx.http import HttpResponseClientRedirect

from ioportal.throttling.attempts import TooManyAttempts

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse, HttpResponseBase

    from ioportal.web.common.requests import UserRequest

_P = ParamSpec("_P")
_R = TypeVar("_R", bound="HttpResponseBase")


def staff_only(
    view: Callable[Concatenate[UserRequest, _P], _R],
) -> Callable[Concatenate[UserRequest, _P], _R]:
    """Refuse users who are not staff."""

    @wraps(view)
    def guarded(request: UserRequest, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        if not request.user.is_staff:
            raise PermissionDenied("This page shows servers, raw logs or the jobs of all users.")
        return view(request, *args, **kwargs)

    return guarded  # type: ignore[return-value]  # wraps() hides the plain call


class LogInAsPage:
    """Middleware: redirect htmx to the log-in after the end of a session.

    By itself, htmx would follow the redirect and insert the log-in into the page.
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
            return HttpResponseClientRedirect(response.url)
        return response


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
