"""Requests as this site's middleware leaves them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import HttpRequest

if TYPE_CHECKING:
    from django.contrib.auth.models import User


class UserRequest(HttpRequest):
    """A request of somebody who is logged in: every page but the log-in demands it."""

    user: User


def storable(text: str) -> str:
    """Return a text of an address as the database can look it up: it stores no NUL characters."""
    return text.replace("\x00", "\ufffd")


def asked(request: HttpRequest, name: str) -> str:
    """Return a parameter of the address; "" where it is missing."""
    return storable(request.GET.get(name, "")).strip()
