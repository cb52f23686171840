"""Answers that say what is wrong: for programs a code, for people a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import InterfaceError, OperationalError
from django.http import JsonResponse
from ninja import Schema

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse
    from ninja import NinjaAPI

_DATABASE_RETRY_S = 2  # it is back soon, or agents pause for longer by themselves


class ProblemResponse(Schema):
    """Why a request was not done."""

    code: str
    message: str


class Problem(Exception):  # noqa: N818  (an answer, not a fault)
    """A request that is not done."""

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
        self.answer = {"code": code, "message": message, **details}
        self.retry_after_s = retry_after_s


def add_handlers(api: NinjaAPI) -> None:
    """Have an API answer problems, and a database that is away."""
    api.exception_handler(Problem)(_answer)
    for fault in (OperationalError, InterfaceError):
        api.exception_handler(fault)(_database_is_away)


def _answer(_request: HttpRequest, problem: Problem) -> HttpResponse:
    response = JsonResponse(problem.answer, status=problem.status)
    if problem.retry_after_s is not None:
        response["Retry-After"] = str(problem.retry_after_s)
    if problem.status == 401:  # noqa: PLR2004
        response["WWW-Authenticate"] = "Token"
    return response


def _database_is_away(request: HttpRequest, _fault: Exception) -> HttpResponse:
    return _answer(
        request,
        Problem(
            503,
            "database",
            "The database does not answer. Nothing was stored; try again.",
            retry_after_s=_DATABASE_RETRY_S,
        ),
    )
