"""A cache of results over many jobs or much telemetry.

A result is reused for `STATISTICS_INTERVAL`, like the statistics of running jobs, and after that
until its version changes: while data arrives, some statistics change every few seconds.
"""

from __future__ import annotations

from datetime import timedelta
from hashlib import sha256
from time import time
from typing import TYPE_CHECKING, TypeVar

from django.conf import settings
from django.core.cache import cache
from django.db.models import Max

from ioportal.jobs.models import JobStatistics

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

_Result = TypeVar("_Result")
_TIMEOUT = timedelta(minutes=10)  # for changes that versions do not show: the name of a cluster


def cached(
    name: str,
    key: object,
    compute: Callable[[], _Result],
    version: Callable[[], object] | None = None,
) -> _Result:
    """Return a cached result, or compute and store it.

    Args:
        name: name of the result.
        key: all inputs but stored data; its `repr` identifies them.
        compute: returns the result.
        version: returns the version of the stored data; None: it has no version.
    """
    cache_key = f"{name}:{sha256(repr(key).encode()).hexdigest()}"
    stored: tuple[float, object, _Result] | None = cache.get(cache_key)
    if stored and time() - stored[0] < settings.STATISTICS_INTERVAL.total_seconds():
        return stored[2]
    current = version() if version else None
    if stored and version and stored[1] == current:
        return stored[2]
    began = time()
    result = compute()
    cache.set(cache_key, (began, current, result), _TIMEOUT.total_seconds())
    return result


def statistics_version() -> datetime | None:
    """Return the latest time of computation of the statistics of any job.

    One worker at a time computes them, so that it only grows.
    """
    computed_at: datetime | None = JobStatistics.objects.aggregate(at=Max("computed_at"))["at"]
    return computed_at
