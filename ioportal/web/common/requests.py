"""Requests after middleware: a logged-in user, and parameters that the database accepts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import HttpRequest

from ioportal.core.visible_text import storable

if TYPE_CHECKING:
    from collections.abc import Collection

    from django.contrib.auth.models import User
    from django.http import QueryDict


class UserRequest(HttpRequest):
    """A request of a logged-in user, as `LoginRequiredMiddleware` guarantees."""

    user: User


def other_parameters(query: QueryDict, own: Collection[str]) -> list[tuple[str, str]]:
    """Return the parameters of a page that a form must repeat: all but its own and the format."""
    return [
        (name, value)
        for name, values in query.lists()
        if name not in own and name != "format"
        for value in values
    ]


def parameter(request: HttpRequest, name: str) -> str:
    """Return a parameter of the URL; "" if it is missing."""
    return storable(request.GET.get(name, "")).strip()


def changed_query(query: QueryDict, **changes: object) -> str:
    """Return the first page's query with changed parameters; None removes one."""
    changed = query.copy()
    for name in ("page", "format", *changes):
        changed.pop(name, None)
    for name, value in changes.items():
        if value is not None:
            changed[name] = str(value)
    return f"?{changed.urlencode()}"
