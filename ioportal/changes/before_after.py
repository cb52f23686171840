"""The periods before and after a mitigation, as queries of its jobs, with remarks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from django.http import QueryDict
from django.utils import timezone

from ioportal.changes.analysis.periods import Event, NoPeriods, periods
from ioportal.changes.models import Mitigation
from ioportal.core.timelines import Known
from ioportal.jobs.populations import scopes
from ioportal.jobs.populations.selections import kind_in
from ioportal.jobs.trends import RECORDS, extent, unread, upgrades
from ioportal.metrics import METRICS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.contrib.auth.models import User

    from ioportal.changes.analysis.expectations import ExpectedRatio
    from ioportal.changes.analysis.periods import Period

_ALWAYS = (datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC))
_GAP_SHARE = 0.05  # of a period; shorter gaps in the data are not pointed out
_COUNTED = {metric.name for metric in METRICS if metric.is_counted}


@dataclass(frozen=True)
class Neighbour:
    """Another event that may concern the jobs of a mitigation.

    Args:
        event: the event.
        key: of the mitigation that began or was reverted; None: a server upgrade.
        metric: the metric on which an effect is expected; "": none.
        effect: the expected effect on this metric.
    """

    event: Event
    key: int | None = None
    metric: str = ""
    effect: ExpectedRatio | None = None

    def expected(self, metric: str) -> ExpectedRatio | None:
        """Return the expected effect on a metric; None: unknown."""
        return self.effect if self.metric == metric else None

    @property
    def day(self) -> str:
        """The local date of its start: '10 Sep 2026'."""
        return f"{timezone.localtime(self.event.start):%-d %b %Y}"


@dataclass(frozen=True)
class BeforeAfter:
    """Queries of the jobs before and after a mitigation, with other facts that may matter.

    `reason`: why there are no queries; "" otherwise.
    """

    before: str = ""
    after: str = ""
    gaps: tuple[str, ...] = ()  # in the data of the periods, as sentences
    reason: str = ""
    spans: tuple[Period, ...] = ()
    together: tuple[Neighbour, ...] = ()  # measured together with the mitigation

    @property
    def named_periods(self) -> list[tuple[str, datetime, datetime]]:
        """The periods with their names."""
        names = ("Before", "After")
        return [(name, *period) for name, period in zip(names, self.spans, strict=False)]


class Surroundings:
    """Neighbouring events and times of data, loaded once for any number of mitigations."""

    def __init__(self, user: User) -> None:
        self._user = user
        self._extents: dict[str, Period | None] = {}

    def before_after(self, mitigation: Mitigation) -> BeforeAfter:
        """Return the jobs to compare, within the data that the user may see."""
        data = self._extent(mitigation.scope)
        if data is None:
            return BeforeAfter(reason=self._no_jobs)
        change = Event(mitigation.started_at, mitigation.complete_at, mitigation.title)
        neighbours = {each.event: each for each in self.neighbours(mitigation.scope, mitigation)}
        result = periods(change, data, list(neighbours), mitigation.reverted_at)
        if isinstance(result, NoPeriods):
            return BeforeAfter(reason=result.reason)
        both = (result.before, result.after)
        before, after = (scopes.within(mitigation.scope, *period) for period in both)
        together = tuple(neighbours[event] for event in result.together)
        gaps = tuple(_gaps(both)) if mitigation.metric in _COUNTED else ()
        return BeforeAfter(before, after, gaps, spans=both, together=together)

    @cached_property
    def mitigations(self) -> dict[int, Mitigation]:
        """The mitigations that the user may see, by key."""
        return {each.pk: each for each in Mitigation.objects.visible_to(self._user)}

    @cached_property
    def _upgrades(self) -> list[Event]:
        return [Event(at, at, f"upgrade, {text}") for at, text in upgrades(*_ALWAYS)]

    def _extent(self, scope: str) -> Period | None:
        """Return the time of a scope's jobs; None without a started job."""
        if scope not in self._extents:
            query = QueryDict(scope)
            kind = kind_in(query)
            jobs = kind.filter_set(query, queryset=kind.visible_to(self._user)).qs
            self._extents[scope] = extent(jobs, RECORDS[kind.name])
        return self._extents[scope]

    def neighbours(self, scope: str, mitigation: Mitigation | None) -> Iterator[Neighbour]:
        """Yield server upgrades, and mitigations and reverts that may concern a scope's jobs.

        Args:
            scope: the jobs.
            mitigation: the mitigation whose neighbours they are, which is left out.
        """
        for other in self.mitigations.values():
            if other != mitigation and scopes.may_overlap(other.scope, scope):
                about = (other.pk, other.metric)
                begun = Event(other.started_at, other.complete_at, other.title)
                yield Neighbour(begun, *about, other.expected)
                if at := other.reverted_at:
                    undone = other.expected and other.expected.inverse
                    yield Neighbour(Event(at, at, f"{other.title} (reverted)"), *about, undone)
        yield from map(Neighbour, self._upgrades)

    @property
    def _no_jobs(self) -> str:
        whose = "" if self._user.is_staff else " of yours"
        return f"No job{whose} in its scope has started."


def _gaps(both: tuple[Period, Period]) -> Iterator[str]:
    """Yield remarks about the time in which no MDT was read."""
    gaps = [gap for gap in unread(both[0][0], both[1][1]) if gap.known is Known.NOTHING]
    for name, (start, end) in zip(("before", "after"), both, strict=True):
        within = (min(gap.end, end) - max(gap.start, start) for gap in gaps)
        missing = sum((length for length in within if length > timedelta()), timedelta())
        if missing > _GAP_SHARE * (end - start):
            yield f"No counters of the MDTs for {_hours(missing)} of the period {name}."


def _hours(length: timedelta) -> str:
    return f"{length / timedelta(hours=1):,.0f} h"
