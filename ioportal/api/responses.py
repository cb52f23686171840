"""Common parts of API responses, and declarations of responses without a ninja schema."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import wraps
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from django.http import HttpResponse, HttpResponseNotAllowed, JsonResponse
from django.utils.cache import get_conditional_response, patch_vary_headers, set_response_etag

from ioportal.core.problem_details import CONTENT_TYPE, problem_details, request_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

_ID = "X-Request-ID"
_FRESH_S = 30  # figures of running jobs change every minute


def finished(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Complete the responses of a view of the API."""

    @wraps(view)
    def respond(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return complete(request, view(request, *args, **kwargs))

    return respond


class CompleteProblems:
    """Middleware: complete problems that come from no view of the API, such as server errors."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Complete a problem without a request id."""
        response = self._get_response(request)
        is_problem = response.get("Content-Type") == CONTENT_TYPE
        return complete(request, response) if is_problem and _ID not in response else response


def json_response(body: Any) -> HttpResponse:
    """Respond with JSON; times are in UTC with a zone."""
    return HttpResponse(json.dumps(body, default=_encoded), content_type="application/json")


def _encoded(value: Any) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    raise TypeError(type(value))


def complete(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Add the headers of all responses; answer 304 instead of an unchanged response."""
    id_ = request_id(request.headers.get(_ID, ""))
    if isinstance(response, HttpResponseNotAllowed):
        allowed = ", ".join(sorted(response["Allow"].split(", ")))
        message = f"{request.method} is not allowed here, but {allowed}."
        body = problem_details(response.status_code, "method", message)
        response = JsonResponse(body, status=response.status_code, content_type=CONTENT_TYPE)
        response["Allow"] = allowed
    if response.get("Content-Type") == CONTENT_TYPE and isinstance(response, HttpResponse):
        problem = json.loads(response.content) | {"request_id": id_}
        response.content = json.dumps(problem)
    elif request.method == "GET" and response.status_code == HTTPStatus.OK:
        response = _with_rules_for_caches(request, response)
    response[_ID] = id_
    if rate := getattr(request, "rate", None):
        for name, value in rate.headers.items():
            response[name] = value
    return response


def _with_rules_for_caches(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    response.setdefault("Cache-Control", f"private, max-age={_FRESH_S}")
    patch_vary_headers(response, ("Authorization", "Accept"))
    if not isinstance(response, HttpResponse):
        return response
    set_response_etag(response)
    conditional = get_conditional_response(request, etag=response["ETag"], response=response)
    return conditional or response


def answer(
    description: str,
    example: Any,
    *other_kinds: str,
    kind: str = "application/json",
    schema: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return `openapi_extra` of the response 200, in one kind with an example, or in others."""
    own = {"schema": schema or {}, "example": example}
    content = {kind: own} | {other: {"schema": {}} for other in other_kinds}
    return {"responses": {200: {"description": description, "content": content}}}
