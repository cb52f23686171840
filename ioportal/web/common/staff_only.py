"""Views for staff."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from django.core.exceptions import PermissionDenied

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpResponseBase

    from ioportal.web.common.requests import UserRequest

_P = ParamSpec("_P")
_R = TypeVar("_R", bound="HttpResponseBase")


def staff_only(
    view: Callable[Concatenate[UserRequest, _P], _R],
) -> Callable[Concatenate[UserRequest, _P], _R]:
    """Refuse users who are not staff."""

    @wraps(view)
    def guarded(request: UserRequest, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        if not request.user.is_staff:
            raise PermissionDenied("This page shows servers, raw logs or the jobs of all users.")
        return view(request, *args, **kwargs)

    return guarded  # type: ignore[return-value]  # wraps() hides the plain call
