"""Who may see a page."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpResponseBase

    from ioportal.web.requests import UserRequest

_P = ParamSpec("_P")
_R = TypeVar("_R", bound="HttpResponseBase")


def staff_only(
    view: Callable[Concatenate[UserRequest, _P], _R],
) -> Callable[Concatenate[UserRequest, _P], _R]:
    """Let staff in, ask strangers to log in, and tell others that it is not for them."""

    @wraps(view)
    def guarded(request: UserRequest, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        if not request.user.is_staff:
            raise PermissionDenied("Raw logs name everybody's jobs: they are for staff.")
        return view(request, *args, **kwargs)

    return login_required(guarded)  # type: ignore[return-value]  # wraps() hides the plain call
