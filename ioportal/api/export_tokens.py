"""Exports of pages for programs: the address of a page with a ``format`` and a token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ioportal.api.authentication import READER
from ioportal.api.problems import Problem, respond
from ioportal.api.responses import complete

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

_PROBLEMS = {
    403: ("permission", "This export is for staff."),
    404: ("missing", "There is no such object that you may see."),
}


class ExportTokens:
    """Middleware: a token with the scope `read` instead of a session, for exports only."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Pass on the request; an error page becomes a problem."""
        response = self._get_response(request)
        is_page = response.get("Content-Type", "").startswith("text/html")
        if getattr(request, "has_token", False) and is_page and response.status_code in _PROBLEMS:
            problem = Problem(response.status_code, *_PROBLEMS[response.status_code])
            return complete(request, respond(request, problem))
        return response

    def process_view(
        self,
        request: HttpRequest,
        view: Callable[..., HttpResponseBase],
        _args: tuple[Any, ...],
        _kwargs: dict[str, Any],
    ) -> HttpResponseBase | None:
        """Act as the user of the token; refuse a request with an invalid one."""
        key = request.headers.get("Authorization")
        is_export = "format" in request.GET and hasattr(view, "formats")
        if key is None or not is_export or request.method not in {"GET", "HEAD"}:
            return None
        request.has_token = True  # type: ignore[attr-defined]
        try:
            request.user = READER.authenticate(request, key).user  # type: ignore[assignment]
        except Problem as refusal:
            return complete(request, respond(request, refusal))
        return None
