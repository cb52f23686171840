"""Change points of a population: days from which its metrics are at another level.

What explains them is looked up in the log of mitigations and the upgrades of servers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from django.utils import timezone

from ioportal.changes.analysis import change_points
from ioportal.changes.analysis.periods import Event
from ioportal.changes.models import DismissedChange, Mitigation
from ioportal.jobs.analysis import trends
from ioportal.jobs.analysis.comparison.comparing import compare
from ioportal.jobs.analysis.comparison.results import Refusal, Scale
from ioportal.jobs.populations import scopes
from ioportal.jobs.populations.population_values import Covariate
from ioportal.jobs.populations.selections import BATCH_JOBS, PANDA_JOBS, midnight
from ioportal.jobs.redefinitions import redefined, redefinitions
from ioportal.jobs.trends import RECORDS, medians, poor, upgrades
from ioportal.load.analysis.load_ramp import Interval
from ioportal.metrics import ANY_BY_NAME, Metric

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from django.contrib.auth.models import User

    from ioportal.jobs.populations.selections import JobKind
    from ioportal.jobs.trends import Jobs

FEWEST_JOBS = 3  # of a day with a median
_NEARBY = timedelta(days=1)
_AROUND = timedelta(days=14)  # of a change: jobs whose mix of applications is compared
_MUCH_SMALLER = 0.5  # share of the logarithm of a change that is left with the same mix
MAIN_METRICS = {
    BATCH_JOBS.name: (
        "metadata_operations_per_node",
        "duration_s",
        "open_close_ratio",
        "read_bytes_per_node",
        "write_bytes_per_node",
    ),
    PANDA_JOBS.name: (
        "panda_duration_s",
        "panda_setup_s",
        "panda_wait_s",
        "panda_cpu_efficiency",
    ),
}


@dataclass(frozen=True)
class Effect:
    """A metric and its levels before and after a change."""

    metric: Metric
    before: float
    after: float

    @property
    def ratio(self) -> float:
        """Return after / before."""
        return self.after / self.before

    @property
    def size(self) -> float:
        """The size of the change, as the absolute logarithm of its ratio."""
        return abs(float(np.log(self.ratio)))


@dataclass(frozen=True)
class SameMix:
    """The ratio of medians after and before a change, weighted to the same mix of applications.

    Without `effect`, `is_other` says whether the jobs before and after have hardly an application
    in common; otherwise there are too few jobs or days to compare.
    """

    effect: Interval | None = None
    is_other: bool = False


@dataclass(frozen=True)
class Change:
    """Changes of metrics within a day, the largest first.

    `same_mix` is the largest effect among jobs of the same applications; None: it is similar.
    """

    day: date
    effects: tuple[Effect, ...]
    same_mix: SameMix | None = None

    @property
    def largest(self) -> Effect:
        """The largest effect."""
        return self.effects[0]


@dataclass(frozen=True)
class Explained:
    """A change with what explains it: mitigations and server upgrades within a day."""

    change: Change
    mitigations: tuple[Mitigation, ...]
    upgrades: tuple[str, ...]

    @property
    def is_explained(self) -> bool:
        """Whether anything explains it."""
        return bool(self.mitigations or self.upgrades)


def changes(kind: JobKind, jobs: Jobs, start: datetime, end: datetime) -> list[Change]:
    """Find the changes in the daily medians of the main metrics of jobs, in order.

    One query, and two for each change.
    """
    metrics = [ANY_BY_NAME[name] for name in MAIN_METRICS[kind.name]]
    steps = _steps(kind, jobs, metrics, start, end)
    return [
        replace(change, same_mix=_same_mix(kind, jobs, change.largest, _around(change, steps)))
        for change in _merged(steps)
    ]


def _around(
    change: Change, steps: Iterable[tuple[date, Effect]]
) -> tuple[datetime, datetime, datetime]:
    """Return up to 14 days before the largest effect of a change, its day, and as long after it.

    They end at the neighbouring changes of the same metric.
    """
    day = change.day
    same = [each for each, effect in steps if effect.metric == change.largest.metric]
    first = max((each for each in same if each < day), default=day - _AROUND)
    last = min((each for each in same if each > day), default=day + _AROUND)
    bounds = (max(first, day - _AROUND), day, min(last, day + _AROUND))
    return midnight(bounds[0]), midnight(bounds[1]), midnight(bounds[2])


def _same_mix(
    kind: JobKind, jobs: Jobs, effect: Effect, bounds: tuple[datetime, datetime, datetime]
) -> SameMix | None:
    """Return an effect among jobs of the same applications; None: it is similar.

    Args:
        kind: of the jobs.
        jobs: the jobs.
        effect: the effect.
        bounds: of the time before the change, and of the time after it.
    """
    name = effect.metric.name
    known = jobs.exclude(poor(effect.metric))
    sides = [
        kind.values(
            known.filter(started_at__gte=first, started_at__lt=last), [name], Covariate.APPLICATION
        )
        for first, last in pairwise(bounds)
    ]
    arms = [side.arm for side in sides]
    another = redefined(arms, [name], redefinitions())
    [weighted] = compare(arms, [name], redefined=another).metrics[name].effects
    if weighted.refusal in {Refusal.NO_SHARED_STRATUM, Refusal.FEW_MATCHED}:
        return SameMix(is_other=True)
    ratio = weighted.estimate
    if weighted.low is None or weighted.high is None:
        return SameMix()
    if not ratio or weighted.scale is not Scale.RATIO:
        return None
    is_smaller = np.log(ratio) * np.sign(np.log(effect.ratio)) < _MUCH_SMALLER * effect.size
    return SameMix(Interval(ratio, weighted.low, weighted.high)) if is_smaller else None


def single_step(
    kind: JobKind,
    jobs: Jobs,
    metric: Metric,
    period: tuple[datetime, datetime],
    events: Sequence[Event],
) -> tuple[date, Effect] | None:
    """Return the change in the daily medians of a metric within a day of the first of some events.

    None: one of the events has no separate change, so their effects cannot be separated.
    """
    found = _steps(kind, jobs, [metric], *period)
    if not found:
        return None
    nearest = [min(found, key=lambda step: _distance(step[0], event)) for event in events]
    pairs = zip(nearest, events, strict=True)
    is_near = all(_distance(day, event) <= _NEARBY for (day, _), event in pairs)
    return nearest[0] if is_near and len({day for day, _ in nearest}) == len(events) else None


def _distance(day: date, event: Event) -> timedelta:
    """Return the time between a day and the days of an event and its roll-out."""
    first, last = timezone.localdate(event.start), timezone.localdate(event.end)
    return max(first - day, day - last, timedelta())


def _steps(
    kind: JobKind, jobs: Jobs, metrics: Sequence[Metric], start: datetime, end: datetime
) -> list[tuple[date, Effect]]:
    """Return the days from which daily medians of metrics are at another level."""
    days = trends.buckets(start, end, trends.Step.DAY, timezone.get_current_timezone())
    columns: dict[str, tuple[list[int], list[float]]] = {m.name: ([], []) for m in metrics}
    rows = sorted(medians(jobs, RECORDS[kind.name], metrics, days, FEWEST_JOBS), key=_bucket)
    for number, values in rows:
        for name, value in values.items():
            if value is not None:
                columns[name][0].append(number)
                columns[name][1].append(value)
    first = timezone.localdate(start)
    return [
        (first + timedelta(days=int(numbers[point.position])), effect)
        for metric in metrics
        for numbers, values_of in [columns[metric.name]]
        for point in change_points.change_points(
            np.array(numbers, np.int64), np.array(values_of, np.float64)
        )
        for effect in [Effect(metric, point.before, point.after)]
    ]


def _bucket(row: tuple[int, object]) -> int:
    return row[0]


def _merged(found: Iterable[tuple[date, Effect]]) -> Iterator[Change]:
    """Yield one change for all effects within a day, on the day of the largest."""
    rest = sorted(found, key=lambda each: each[0])
    while rest:
        first = rest[0][0]
        group = [each for each in rest if each[0] - first <= _NEARBY]
        rest = rest[len(group) :]
        group.sort(key=lambda each: -each[1].size)
        yield Change(group[0][0], tuple(effect for _, effect in group))


def explained(
    found: Sequence[Change], scope: str, user: User, start: datetime, end: datetime
) -> list[Explained]:
    """Return changes with their explanations; dismissed ones are left out."""
    if not found:
        return []
    dismissed = set(DismissedChange.objects.filter(scope=scope).values_list("day", flat=True))
    margin = 2 * _NEARBY
    logged = [
        mitigation
        for mitigation in Mitigation.objects.visible_to(user).changing_within(
            start - margin, end + margin
        )
        if scopes.may_overlap(mitigation.scope, scope)
    ]
    upgraded = upgrades(start - margin, end + margin)
    return [
        Explained(
            change,
            tuple(each for each in logged if _is_near(change.day, each)),
            tuple(
                text for at, text in upgraded if abs(timezone.localdate(at) - change.day) <= _NEARBY
            ),
        )
        for change in found
        if not any(abs(day - change.day) <= _NEARBY for day in dismissed)
    ]


def _is_near(day: date, mitigation: Mitigation) -> bool:
    """Return whether a mitigation began, was rolled out or was reverted within a day of `day`."""
    reverted = mitigation.reverted_at
    events = [Event(mitigation.started_at, mitigation.complete_at, "")]
    events += [Event(reverted, reverted, "")] if reverted else []
    return any(_distance(day, event) <= _NEARBY for event in events)


def dismiss(scope: str, day: date, by: str) -> None:
    """Store that a change needs no explanation; repeating it has no effect."""
    DismissedChange.objects.get_or_create(scope=scope, day=day, defaults={"by": by})
