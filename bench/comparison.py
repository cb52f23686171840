"""A comparison before and after a date: 100,000 jobs a side, with all metrics."""

from __future__ import annotations

from datetime import timedelta
from statistics import median
from time import monotonic, process_time
from typing import TYPE_CHECKING

from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connection
from django.http import QueryDict
from django.test import override_settings

from bench import centre, portal
from bench.figures import RUNS, Figure, say
from ioportal.changes.comparisons import compare_arms, control_arm
from ioportal.jobs.populations.selections import BATCH_JOBS, Selection
from ioportal.jobs.visibility import visibility_key
from ioportal.metrics import METRICS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ioportal.changes.comparisons import ArmComparison

_JOBS = 202_000
_BEFORE = "start=2024-01-01T00:00:00Z&end=2024-07-01T12:00:00Z"
_AFTER = "start=2024-07-01T12:00:00Z&end=2025-01-01T00:00:00Z"
_NAMES = [metric.name for metric in METRICS]


def measure(scale: float) -> Iterator[Figure]:
    """Compare both halves of a year, cold and cached, with and without a control arm."""
    with centre.filled(round(_JOBS * scale)):
        staff = User.objects.get(username=centre.STAFF)
        arms = [_arm(staff, period) for period in (_BEFORE, _AFTER)]
        heavy = [_arm(staff, f"user={centre.HEAVY_USER}&{period}") for period in (_BEFORE, _AFTER)]
        control = [control_arm(staff, arm) for arm in heavy]

        def alone() -> ArmComparison:
            return compare_arms(arms, _NAMES)

        def controlled() -> ArmComparison:
            return compare_arms(heavy, _NAMES, control=control)

        fewest = min(arm.jobs for arm in alone().result.arms)
        yield Figure("comparison_jobs", "Comparison: jobs of the smaller arm", fewest, "jobs")
        yield Figure("comparison_cold", "Comparison: cold", _cold_s(alone), "s", at_most=1.5)
        yield Figure(
            "comparison_cached", "Comparison: cached", 1000 * _warm_s(alone), "ms", at_most=300
        )
        yield Figure(
            "comparison_processor", "Comparison: processor time, cold", _processor_s(alone), "s"
        )
        yield Figure(
            "comparison_controlled",
            "Comparison of the heaviest user with all others as control: cold",
            _cold_s(controlled),
            "s",
        )
        yield Figure(
            "comparison_controlled_processor",
            "Comparison of the heaviest user with all others as control: processor time, cold",
            _processor_s(controlled),
            "s",
        )


def _arm(user: User, query: str) -> Selection:
    filters = QueryDict(query)
    jobs = BATCH_JOBS.filter_set(filters, queryset=BATCH_JOBS.visible_to(user)).qs
    return Selection(BATCH_JOBS, filters.urlencode(), visibility_key(user), jobs)


def _cold_s(run: Callable[[], object]) -> float:
    def cold() -> float:
        cache.clear()
        return _seconds(run)

    times = [cold() for _ in range(RUNS)]
    say(f"cold: {', '.join(f'{seconds:.2f} s' for seconds in times)}")
    return median(times)


def _warm_s(run: Callable[[], object]) -> float:
    """Measure results that are validated by their version each time."""
    with override_settings(STATISTICS_INTERVAL=timedelta()):
        return median(_seconds(run) for _ in range(RUNS))


def _processor_s(run: Callable[[], object]) -> float:
    """Measure the processor time of this process and its database process, without workers."""
    with connection.cursor() as cursor:
        cursor.execute("SET max_parallel_workers_per_gather = 0")
        cache.clear()
        began = process_time() + portal.backend_s()
        run()
        spent = process_time() + portal.backend_s() - began
        cursor.execute("RESET max_parallel_workers_per_gather")
    return spent


def _seconds(run: Callable[[], object]) -> float:
    began = monotonic()
    run()
    return monotonic() - began
