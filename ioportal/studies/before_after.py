"""The periods before and after a mitigation, as queries of its jobs, with remarks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from django.http import QueryDict

from ioportal.analysis.before_after import LONGEST, Event, NoPeriods, periods
from ioportal.analysis.metrics import METRICS, Source
from ioportal.analysis.timelines import Known
from ioportal.studies import scopes
from ioportal.studies.models import Mitigation
from ioportal.studies.populations import kind_in
from ioportal.studies.trends import RECORDS, extent, unread, upgrades

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from django.contrib.auth.models import User

    from ioportal.analysis.before_after import Period
    from ioportal.studies.populations import JobKind
    from ioportal.studies.trends import Jobs

_MARGIN = LONGEST + timedelta(days=1)
_GAP_SHARE = 0.05  # of a period; shorter gaps in the data are not pointed out
_FROM_COUNTERS = {
    metric.name for metric in METRICS if metric.source in {Source.JOB_STATS, Source.JOB_STATS_MDT}
}


@dataclass(frozen=True)
class BeforeAfter:
    """Two queries of the jobs of a mitigation, before it and after it, with remarks.

    `reason` states why there are none; "": there are.
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


def before_after(mitigation: Mitigation, user: User) -> BeforeAfter:
    """Return the jobs to compare, within the data that `user` may see."""
    kind = kind_in(QueryDict(mitigation.scope))
    data = extent(_jobs(kind, mitigation.scope, user), RECORDS[kind.name])
    if data is None:
        return BeforeAfter(reason="No job in its scope has started.")
    change = Event(mitigation.started_at, mitigation.complete_at, mitigation.title)
    result = periods(change, data, list(_neighbours(mitigation, user)), mitigation.reverted_at)
    if isinstance(result, NoPeriods):
        return BeforeAfter(reason=result.reason)
    both = (result.before, result.after)
    gaps = list(_gaps(both)) if not mitigation.metric or mitigation.metric in _FROM_COUNTERS else []
    before, after = (scopes.within(mitigation.scope, *period) for period in both)
    together = [f"Measured together with: {each.text}." for each in result.together]
    return BeforeAfter(before, after, (*together, *gaps), spans=both)


def _jobs(kind: JobKind, scope: str, user: User) -> Jobs:
    jobs: Jobs = kind.filter_set(QueryDict(scope), queryset=kind.visible_to(user)).qs
    return jobs


def _neighbours(mitigation: Mitigation, user: User) -> Iterator[Event]:
    """Yield other mitigations and reverts that may concern the same jobs, and server upgrades."""
    start, end = mitigation.started_at - _MARGIN, mitigation.complete_at + _MARGIN
    others = Mitigation.objects.visible_to(user).exclude(pk=mitigation.pk)
    for other in others.changing_within(start, end):
        if scopes.may_overlap(other.scope, mitigation.scope):
            yield Event(other.started_at, other.complete_at, other.title)
            if other.reverted_at:
                yield Event(other.reverted_at, other.reverted_at, f"{other.title} (reverted)")
    for at, text in upgrades(start, end):
        yield Event(at, at, f"Upgrade, {text}")


def _gaps(both: tuple[Period, Period]) -> Iterator[str]:
    """Yield remarks about the time in which no MDT was read."""
    for name, (start, end) in zip(("before", "after"), both, strict=True):
        missing = sum(
            (gap.end - gap.start for gap in unread(start, end) if gap.known is Known.NOTHING),
            timedelta(),
        )
        if missing > _GAP_SHARE * (end - start):
            yield f"No counters of the MDTs for {_hours(missing)} of the period {name}."


def _hours(length: timedelta) -> str:
    return f"{length / timedelta(hours=1):,.0f} h"
