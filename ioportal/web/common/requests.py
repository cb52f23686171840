"""Requests after middleware: a logged-in user, and parameters that the database accepts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import HttpRequest

if TYPE_CHECKING:
    from django.contrib.auth.models import User


class UserRequest(HttpRequest):
    """A request of a logged-in user, as `LoginRequiredMiddleware` guarantees."""

    user: User


def storable(text: str) -> str:
    """Replace NUL characters, which PostgreSQL does not accept."""
    return text.replace("\x00", "\ufffd")


def parameter(request: HttpRequest, name: str) -> str:
    """Return a parameter of the URL; "" if it is missing."""
    return storable(request.GET.get(name, "")).strip()
