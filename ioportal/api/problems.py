"""Error responses: a code for programs and a sentence for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import InterfaceError, OperationalError
from django.http import JsonResponse
from ninja import Schema

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse
    from ninja import NinjaAPI

_DATABASE_RETRY_S = 2  # agents lengthen the pause themselves


class ProblemResponse(Schema):
    """The body of an error response."""

    code: str
    message: str


class Problem(Exception):  # noqa: N818  (a response, not a fault)
    """A request that is refused."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        retry_after_s: int | None = None,
        **details: Any,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"code": code, "message": message, **details}
        self.retry_after_s = retry_after_s


def add_handlers(api: NinjaAPI) -> None:
    """Handle problems and an unavailable database in an API."""
    api.exception_handler(Problem)(_respond)
    for fault in (OperationalError, InterfaceError):
        api.exception_handler(fault)(_database_unavailable)


def _respond(_request: HttpRequest, problem: Problem) -> HttpResponse:
    response = JsonResponse(problem.body, status=problem.status)
    if problem.retry_after_s is not None:
        response["Retry-After"] = str(problem.retry_after_s)
    if problem.status == 401:  # noqa: PLR2004
        response["WWW-Authenticate"] = "Token"
    return response


def _database_unavailable(request: HttpRequest, _fault: Exception) -> HttpResponse:
    return _respond(
        request,
        Problem(
            503,
            "database",
            "The database is not available. Nothing was stored. Try again.",
            retry_after_s=_DATABASE_RETRY_S,
        ),
    )
