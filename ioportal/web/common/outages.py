"""Responses when the database does not answer, stopped a long statement, or has a full disk."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.http import HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.defaults import server_error
from psycopg.errors import QueryCanceled

from ioportal.core.problem_details import CONTENT_TYPE, problem_details
from ioportal.telemetry.free_space import Overload, database_full

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponseBase

    from ioportal.web.common.requests import UserRequest

_RETRY_S = 10
_SMALL_BODY_BYTES = 1 << 16  # comments and log-ins, not what fills a disk
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_VALUE_CHARACTERS = 80


class FullDisk:
    """Middleware: pages store nothing large while the database's disk is nearly full.

    Services refuse content of any size themselves. The API has its own guard and responses.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Refuse a large body; pass on other requests."""
        length = request.headers.get("Content-Length", "")
        is_large = length.isdecimal() and int(length) > _SMALL_BODY_BYTES
        is_page = not request.path.startswith("/api/")
        if is_large and is_page and request.method not in _SAFE and (full := database_full()):
            return _disk_full(request, full)
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, fault: Exception) -> HttpResponse | None:
        """Respond to the refusal of a service."""
        return _disk_full(request, fault) if isinstance(fault, Overload) else None


def failed(request: UserRequest) -> HttpResponseBase:
    """Respond to an exception that no view handled (Django's `handler500`)."""
    fault = sys.exc_info()[1]
    if isinstance(fault, OperationalError) and isinstance(fault.__cause__, QueryCanceled):
        return _too_much_data(request)
    if isinstance(fault, OperationalError | InterfaceError):
        return _no_database(request)
    if request.path.startswith("/api/"):
        problem = problem_details(500, "fault", "This is a fault of the portal. It was logged.")
        return JsonResponse(problem, status=500, content_type=CONTENT_TYPE)
    return server_error(request)


def _no_database(request: HttpRequest) -> HttpResponse:
    response = _respond(
        request,
        "database",
        "The database is not available. Nothing is lost. Try again in a few seconds.",
        "503.html",
        {"retry_s": _RETRY_S, "is_safe": request.method in {"GET", "HEAD"}},
    )
    response["Retry-After"] = str(_RETRY_S)
    return response


def _disk_full(request: HttpRequest, full: Overload) -> HttpResponse:
    response = _respond(request, "behind", str(full), "503_full_disk.html", {"reason": str(full)})
    response["Retry-After"] = str(full.retry_after_s)
    return response


def _too_much_data(request: HttpRequest) -> HttpResponse:
    seconds = settings.STATEMENT_TIMEOUT.total_seconds()
    selection = {
        name: value[:_VALUE_CHARACTERS]
        for name, value in request.GET.items()
        if value and name != "format"
    }
    stopped = f"{request.path} was stopped: one of its queries took longer than {seconds:g} s"
    if not selection:  # it is unknown whether the page is too large, or the database busy
        return _respond(
            request,
            "too_much_data",
            f"{stopped}. If this happens again, staff can see on {reverse('health')} whether the"
            " portal is behind.",
            "503_too_slow.html",
            {"seconds": seconds, "is_safe": request.method in _SAFE},
        )
    filters = ", ".join(f"{name} = {value}" for name, value in selection.items())
    return _respond(
        request,
        "too_much_data",
        f"{stopped} ({filters}). Select a shorter time range or add filters.",
        "503_too_much_data.html",
        {"seconds": seconds, "selection": selection},
    )


def _respond(
    request: HttpRequest, code: str, message: str, template: str, context: dict[str, object]
) -> HttpResponse:
    """Respond to a program with JSON, to a part of a page with text, to a browser with a page."""
    if "format" in request.GET or request.path.startswith("/api/"):
        problem = problem_details(503, code, message)
        response: HttpResponse = JsonResponse(problem, content_type=CONTENT_TYPE)
    elif not request.accepts("text/html") or "HX-Request" in request.headers:
        response = HttpResponse(message, content_type="text/plain; charset=utf-8")
    else:
        response = HttpResponse(render_to_string(template, {**context, "path": request.path}))
    response.status_code = 503
    response["Cache-Control"] = "no-store"
    return response
