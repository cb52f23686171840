"""Requests after middleware: a logged-in user, and parameters that the database accepts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import HttpRequest

from ioportal.visible_text import storable

if TYPE_CHECKING:
    from django.contrib.auth.models import User


class UserRequest(HttpRequest):
    """A request of a logged-in user, as `LoginRequiredMiddleware` guarantees."""

    user: User


def parameter(request: HttpRequest, name: str) -> str:
    """Return a parameter of the URL; "" if it is missing."""
    return storable(request.GET.get(name, "")).strip()
