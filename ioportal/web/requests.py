"""Requests as this site's middleware leaves them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import HttpRequest

if TYPE_CHECKING:
    from django.contrib.auth.models import User


class UserRequest(HttpRequest):
    """A request of somebody who is logged in: every page but the log-in demands it."""

    user: User
