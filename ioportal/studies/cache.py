"""A cache of results over many jobs, valid until the statistics of any job change.

Statistics are computed by one worker at a time, so that the latest time of computation only grows.
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

_Result = TypeVar("_Result")
_TIMEOUT_S = 600  # for changes that statistics do not show: a queued job, the name of a cluster


def cached(name: str, key: object, compute: Callable[[], _Result]) -> _Result:
    """Return a cached result, or compute and store it.

    Args:
        name: name of the result.
        key: all inputs but the statistics of jobs; its `repr` identifies them.
        compute: returns the result, never None.
    """
    computed_at = JobStatistics.objects.aggregate(at=Max("computed_at"))["at"]
    cache_key = f"{name}:{sha256(repr((computed_at, key)).encode()).hexdigest()}"
    result: _Result | None = cache.get(cache_key)
    if result is None:
        result = compute()
        cache.set(cache_key, result, _TIMEOUT_S)
    return result


def visibility_key(user: User) -> str:
    """Return a key that is the same for users who see the same jobs."""
    if user.is_staff:
        return "staff"
    return repr((user.get_username(), sorted(user.groups.values_list("name", flat=True))))
