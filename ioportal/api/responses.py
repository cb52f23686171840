"""What all responses of the API have: a request id, the limit of the token, rules for caches."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from functools import wraps
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from django.http import HttpResponse, HttpResponseNotAllowed, JsonResponse
from django.utils.cache import get_conditional_response, patch_vary_headers, set_response_etag

from ioportal.problem_details import CONTENT_TYPE, problem_details

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

_FRESH_S = 30  # figures of running jobs change every minute
_REQUEST_ID = re.compile(r"[\w.\-]{1,64}", re.ASCII)


def finished(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Complete the responses of a view of the API."""

    @wraps(view)
    def respond(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return complete(request, view(request, *args, **kwargs))

    return respond


def json_response(body: Any) -> HttpResponse:
    """Respond with JSON; times are in UTC with a zone."""
    return HttpResponse(json.dumps(body, default=_encoded), content_type="application/json")


def _encoded(value: Any) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    raise TypeError(type(value))


def complete(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Add the headers of all responses; answer 304 instead of an unchanged response."""
    request_id = request.headers.get("X-Request-ID", "")
    request_id = request_id if _REQUEST_ID.fullmatch(request_id) else uuid4().hex
    if isinstance(response, HttpResponseNotAllowed):
        allowed = ", ".join(sorted(response["Allow"].split(", ")))
        message = f"{request.method} is not allowed here, but {allowed}."
        body = problem_details(response.status_code, "method", message)
        response = JsonResponse(body, status=response.status_code, content_type=CONTENT_TYPE)
        response["Allow"] = allowed
    if response.get("Content-Type") == CONTENT_TYPE and isinstance(response, HttpResponse):
        problem = json.loads(response.content) | {"request_id": request_id}
        response.content = json.dumps(problem)
    elif request.method == "GET" and response.status_code == HTTPStatus.OK:
        response = _with_rules_for_caches(request, response)
    response["X-Request-ID"] = request_id
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
