"""Error responses: a code for programs and a sentence for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.exceptions import BadRequest, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404, JsonResponse
from ninja import Schema
from ninja.errors import HttpError, ValidationError
from psycopg.errors import QueryCanceled
from pydantic import Field

from ioportal.core.postgres.advisory_locks import is_timeout
from ioportal.core.problem_details import CONTENT_TYPE, problem_details
from ioportal.telemetry.free_space import Overload

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse
    from ninja import NinjaAPI

_EVERYWHERE = (400, 401, 403, 429, 500, 503)
_SLOW_RETRY_S = 60
_DATABASE_RETRY_S = 2  # agents lengthen the pause themselves


class ProblemResponse(Schema):
    """The body of an error response (RFC 9457), with more members by code."""

    title: str = Field(description="Phrase of the status")
    status: int = Field(description="Status of the response")
    code: str = Field(description="Kind of error, for programs: it does not change")
    detail: str = Field(description="What failed and what to do, for people")
    request_id: str = Field("", description="Id of the request")


class Problem(Exception):  # noqa: N818  (a response, not a fault)
    """A request that is refused."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        retry_after_s: int | None = None,
        **members: Any,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.body = problem_details(status, code, message, **members)
        self.retry_after_s = retry_after_s


def invalid(name: str, reason: str) -> Problem:
    """Return the problem of a parameter of the URL."""
    name = name[:64]
    message = f"The parameter {name!r} is invalid. {reason}"
    return Problem(400, "parameter", message, parameter=name)


def problems(*statuses: int) -> dict[int, type[ProblemResponse]]:
    """Return the declaration of error responses: the common ones, and others by status."""
    return dict.fromkeys((*_EVERYWHERE, *statuses), ProblemResponse)


def add_handlers(api: NinjaAPI) -> None:
    """Handle problems, invalid parameters and an unavailable database in an API."""
    api.exception_handler(Problem)(respond)
    api.exception_handler(Overload)(_overloaded)
    api.exception_handler(ValidationError)(_invalid)
    api.exception_handler(HttpError)(_unreadable)
    api.exception_handler(Http404)(_missing)
    for unreadable in (BadRequest, SuspiciousOperation):
        api.exception_handler(unreadable)(_bad_request)
    for fault in (OperationalError, InterfaceError):
        api.exception_handler(fault)(_database_unavailable)


def expect_length(request: HttpRequest, most_bytes: int, **members: Any) -> None:
    """Refuse a body without a length, which would look empty, or with too many bytes.

    Args:
        request: the request.
        most_bytes: allowed.
        members: of the problem of a body that is too large.
    """
    length = request.headers.get("Content-Length")
    if not length:
        raise Problem(411, "length", "Send the header Content-Length.")
    if int(length) > most_bytes:
        raise Problem(413, "too_large", f"A body has at most {most_bytes:,} bytes.", **members)


def respond(_request: HttpRequest, problem: Problem) -> HttpResponse:
    """Return the response to a refused request."""
    response = JsonResponse(problem.body, status=problem.status, content_type=CONTENT_TYPE)
    if problem.retry_after_s is not None:
        response["Retry-After"] = str(problem.retry_after_s)
    if problem.status == 401:  # noqa: PLR2004
        response["WWW-Authenticate"] = "Token"
    return response


def _invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    """Refuse parameters of the URL with 400 and bodies with 422."""
    first = error.errors[0]
    place, *names = map(str, first["loc"])
    status = 422 if place in {"body", "form", "file"} else 400
    name = names[-1] if names else place
    message = f"The parameter {name!r} is invalid: {first['msg']}."
    return respond(request, Problem(status, "parameter", message, parameter=name))


def _overloaded(request: HttpRequest, overload: Overload) -> HttpResponse:
    wait_s = overload.retry_after_s
    return respond(request, Problem(429, "behind", str(overload), retry_after_s=wait_s))


def _unreadable(request: HttpRequest, error: HttpError) -> HttpResponse:
    """Refuse a body that is not JSON."""
    return respond(request, Problem(error.status_code, "body", str(error)))


def missing(request: HttpRequest, address: str) -> HttpResponse:
    """Respond to an address that has no view."""
    return respond(request, Problem(404, "missing", f"There is no address /api/{address[:64]}."))


def _missing(request: HttpRequest, fault: Http404) -> HttpResponse:
    return respond(request, Problem(404, "missing", str(fault) or "There is no such resource."))


def _bad_request(request: HttpRequest, fault: Exception) -> HttpResponse:
    return respond(request, Problem(400, "request", f"The request cannot be read: {fault}"))


def _database_unavailable(request: HttpRequest, fault: Exception) -> HttpResponse:
    if isinstance(fault.__cause__, QueryCanceled):
        message = "The database took too long. Send fewer values, or a shorter time."
        return respond(request, Problem(503, "too_much_data", message, retry_after_s=_SLOW_RETRY_S))
    if is_timeout(fault):
        message = "The portal is storing other records of this kind. Nothing was stored. Try again."
        return respond(request, Problem(503, "busy", message, retry_after_s=_DATABASE_RETRY_S))
    return respond(
        request,
        Problem(
            503,
            "database",
            "The database is not available. Nothing was stored. Try again.",
            retry_after_s=_DATABASE_RETRY_S,
        ),
    )
