"""What was found out of many jobs, kept until any job's figures are computed anew.

Each of them computed makes a new key: one at a time computes, so that moments only go up.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, TypeVar

from django.core.cache import cache
from django.db.models import Max

from ioportal.jobs.models import JobStatistics

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.contrib.auth.models import User

_Found = TypeVar("_Found")
_KEPT_S = 600  # for what changes no figure: a job that waits, the name of a cluster


def kept(what: str, asked: object, find: Callable[[], _Found]) -> _Found:
    """Return what `find` finds, or found before.

    Args:
        what: is looked for.
        asked: all that the answer depends on, but the figures of jobs; its `repr` tells.
        find: returns the answer, never None.
    """
    newest = JobStatistics.objects.aggregate(at=Max("computed_at"))["at"]
    key = f"{what}:{sha256(repr((newest, asked)).encode()).hexdigest()}"
    known: _Found | None = cache.get(key)
    if known is not None:
        return known
    found = find()
    cache.set(key, found, _KEPT_S)
    return found


def eyes(user: User) -> str:
    """Return what decides which jobs somebody sees."""
    if user.is_staff:
        return "staff"
    return repr((user.get_username(), sorted(user.groups.values_list("name", flat=True))))
