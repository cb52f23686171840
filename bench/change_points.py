"""Change points of a year of jobs: the part of the trends page, computed each time."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from django.core.cache import cache

from bench import centre
from bench.figures import Figure, say
from bench.pages import client_of, timed

if TYPE_CHECKING:
    from collections.abc import Iterator

_JOBS = 100_000
_ROUNDS = 5  # after a warm-up request
_AT_MOST_MS = 2_000


def measure(scale: float) -> Iterator[Figure]:
    """Request the change points of all jobs."""
    jobs = int(_JOBS * scale)
    with centre.filled(jobs):
        client = client_of(centre.STAFF)
        times = []
        for _ in range(1 + _ROUNDS):
            cache.clear()
            ms, _ = timed(client, "/trends/change-points/?last=all")
            times.append(ms)
        say(f"change points: {times[0]:.0f} ms first, {median(times[1:]):.0f} ms later")
        yield Figure(
            f"change_points_{jobs}",
            f"Change points of a year of {jobs:,} jobs, without cache",
            median(times[1:]),
            "ms",
            at_most=_AT_MOST_MS,
        )
