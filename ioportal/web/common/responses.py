"""Middleware for all responses: no caching of private ones, no hidden characters in pages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from django.http import HttpResponse
from django.utils.cache import patch_vary_headers

from ioportal.core.visible_text import visible_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponseBase

# Form values must survive a round trip unchanged.
_FORM_VALUES = re.compile(r'(\svalue="[^"]*"|<textarea\b.*?</textarea>)', re.DOTALL)


class PrivateResponses:
    """Middleware: responses are private and not stored, unless they set `Cache-Control` themselves.

    Most depend on the user, and on whether htmx requests a part of a page.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Add `Cache-Control` where it is missing."""
        response = self._get_response(request)
        if "Cache-Control" not in response:
            response["Cache-Control"] = "private, no-store"
            patch_vary_headers(response, ("Cookie", "HX-Request"))
        return response


class VisibleCharacters:
    """Middleware: control and invisible characters in a page become codes.

    See `core.visible_text`. Names come from job scripts and logs. Values of form fields stay as
    they are.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Replace hidden characters in HTML, outside of form fields."""
        response = self._get_response(request)
        if isinstance(response, HttpResponse) and _is_html(response):
            page = response.content.decode(response.charset)
            if visible_text(page) != page:
                parts = _FORM_VALUES.split(page)
                parts[::2] = map(visible_text, parts[::2])
                response.content = "".join(parts)
        return response


def _is_html(response: HttpResponse) -> bool:
    return response.get("Content-Type", "").startswith("text/html")
