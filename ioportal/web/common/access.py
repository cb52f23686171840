"""Who may see a page, and how the others are told."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpResponseRedirect
from django.shortcuts import render, resolve_url
from django_htmx.http import HttpResponseClientRedirect

from ioportal.throttling.limits import TooManyAttempts

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse, HttpResponseBase

    from ioportal.web.common.requests import UserRequest

_P = ParamSpec("_P")
_R = TypeVar("_R", bound="HttpResponseBase")


def staff_only(
    view: Callable[Concatenate[UserRequest, _P], _R],
) -> Callable[Concatenate[UserRequest, _P], _R]:
    """Let staff in, ask strangers to log in, and tell others that it is not for them."""

    @wraps(view)
    def guarded(request: UserRequest, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        if not request.user.is_staff:
            raise PermissionDenied("Servers and raw logs tell of everybody's jobs.")
        return view(request, *args, **kwargs)

    return login_required(guarded)  # type: ignore[return-value]  # wraps() hides the plain call


class LogInAsPage:
    """Middleware: where a session has ended, htmx goes to the log-in instead of fetching it.

    It would follow the redirect and look in the log-in for the part of the page that it asked for.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer as the view does, unless that is a redirect of htmx to the log-in."""
        response = self._get_response(request)
        if (
            isinstance(response, HttpResponseRedirect)
            and "HX-Request" in request.headers
            and response.url.startswith(resolve_url(settings.LOGIN_URL))
        ):
            return HttpResponseClientRedirect(response.url)
        return response


class ThrottledLogIn:
    """Middleware: the page that refuses a log-in, ours or the admin's, after too many attempts."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Answer as the view does."""
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, refusal: Exception) -> HttpResponse | None:
        """Answer for a view that raised `TooManyAttempts`."""
        if not isinstance(refusal, TooManyAttempts):
            return None
        response = render(request, "429.html", {"wait_s": refusal.retry_after_s}, status=429)
        response["Retry-After"] = str(refusal.retry_after_s)
        return response
