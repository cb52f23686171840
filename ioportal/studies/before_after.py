"""The periods before and after a mitigation, as queries of its jobs, with remarks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from django.http import QueryDict

from ioportal.analysis.before_after import Event, NoPeriods, periods
from ioportal.analysis.metrics import METRICS
from ioportal.analysis.timelines import Known
from ioportal.studies import scopes
from ioportal.studies.models import Mitigation
from ioportal.studies.populations import kind_in
from ioportal.studies.trends import RECORDS, extent, unread, upgrades

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.contrib.auth.models import User

    from ioportal.analysis.before_after import Period

_ALWAYS = (datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC))
_GAP_SHARE = 0.05  # of a period; shorter gaps in the data are not pointed out
_COUNTED = {metric.name for metric in METRICS if metric.is_counted}


@dataclass(frozen=True)
class BeforeAfter:
    """Two queries of the jobs of a mitigation, before it and after it, with remarks.

    `reason`: why there are none; "" otherwise.
    """

    before: str = ""
    after: str = ""
    remarks: tuple[str, ...] = ()
    reason: str = ""
    spans: tuple[Period, ...] = ()

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
            return BeforeAfter(reason="No job in its scope has started.")
        change = Event(mitigation.started_at, mitigation.complete_at, mitigation.title)
        neighbours = list(self._neighbours(mitigation))
        result = periods(change, data, neighbours, mitigation.reverted_at)
        if isinstance(result, NoPeriods):
            return BeforeAfter(reason=result.reason)
        both = (result.before, result.after)
        before, after = (scopes.within(mitigation.scope, *period) for period in both)
        together = [f"Measured together with: {each.text}." for each in result.together]
        gaps = list(_gaps(both)) if mitigation.metric in _COUNTED else []
        return BeforeAfter(before, after, (*together, *gaps), spans=both)

    @cached_property
    def _mitigations(self) -> list[Mitigation]:
        return list(Mitigation.objects.visible_to(self._user))

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

    def _neighbours(self, mitigation: Mitigation) -> Iterator[Event]:
        """Yield server upgrades, and other mitigations and reverts that may concern the jobs."""
        for other in self._mitigations:
            if other.pk != mitigation.pk and scopes.may_overlap(other.scope, mitigation.scope):
                yield Event(other.started_at, other.complete_at, other.title)
                if other.reverted_at:
                    yield Event(other.reverted_at, other.reverted_at, f"{other.title} (reverted)")
        yield from self._upgrades


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
