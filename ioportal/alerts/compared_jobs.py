"""Jobs before and after a change, compared for a mail: by size classes and days, and in words.

A change is the mail itself, an answer "It is fixed", or a mitigation.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import numpy as np
import polars as pl
from django.contrib.auth import get_user_model
from django.db.models import F
from django.http import QueryDict
from django.utils import timezone

from ioportal.alerts import answers
from ioportal.changes.analysis.periods import Event, NoPeriods, periods
from ioportal.changes.before_after import Surroundings
from ioportal.changes.comparison_sentences import conclusion
from ioportal.core.formatting import counted, lowered, with_unit
from ioportal.findings.models import CaseEvent
from ioportal.jobs.analysis.comparison.arms import Arm
from ioportal.jobs.analysis.comparison.comparing import compare
from ioportal.jobs.analysis.comparison.results import MIN_DAYS, MIN_JOBS, Refusal, Verdict
from ioportal.jobs.redefinitions import redefined, redefinitions
from ioportal.metrics import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from ioportal.changes.analysis.periods import Period, Periods
    from ioportal.changes.before_after import Neighbour
    from ioportal.findings.models import Case
    from ioportal.jobs.analysis.comparison.results import ArmFigures, MetricComparison
    from ioportal.metrics import Metric

_UNCLEAR = {
    Refusal.NO_VALUES: "no known values",
    Refusal.FEW_JOBS: f"fewer than {MIN_JOBS} jobs",
    Refusal.FEW_DAYS: f"fewer than {MIN_DAYS} days with a similar number of jobs",
    Refusal.NO_SHARED_STRATUM: "jobs of other sizes",
    Refusal.FEW_MATCHED: "most jobs of other sizes",
    Refusal.REDEFINED: "an upgraded server, which counts other requests as opens,",
}
_MAIL = "our mail"
_ANSWER = f'your answer "{answers.FIXED.rstrip(".")}"'
_HIDDEN = "a change by staff"


@dataclass(frozen=True)
class Compared:
    """Jobs before and after a change.

    Args:
        change: the change.
        causes: the change, and the events measured together with it.
        figures: comparisons by metric, the main one first; empty: there is nothing to compare.
        reason: why there is nothing; "" otherwise.
        until, since: end of the time before, start of the time after.
    """

    change: Event
    causes: tuple[Event, ...]
    figures: Mapping[Metric, MetricComparison]
    reason: str
    until: datetime
    since: datetime

    @property
    def main(self) -> MetricComparison | None:
        """The comparison of the main metric."""
        return next(iter(self.figures.values()), None)

    @property
    def text(self) -> str:
        """What changed in words."""
        if not self.main:
            reason = lowered(self.reason).rstrip(".")
            return f"unclear for the change of {day_of(self.change.end)}: {reason}"
        if refusal := self.main.effects[0].refusal:
            return f"unclear: {_UNCLEAR[refusal]} before or after the change ({self._counts})"
        changes = [
            _change(metric, figures)
            for metric, figures in self.figures.items()
            if not figures.effects[0].refusal
        ]
        return f"{'; '.join(changes)} ({self._counts})"

    @property
    def _counts(self) -> str:
        assert self.main  # noqa: S101  (counted)
        before, after = map(_count, self.main.arms)
        return f"{before} before {day_of(self.until)}, {after} since {day_of(self.since)}"


def _change(metric: Metric, figures: MetricComparison) -> str:
    medians = [with_unit(arm.median, metric.unit) for arm in figures.arms]
    [effect] = figures.effects
    words = conclusion(metric, effect)
    if effect.verdict is Verdict.EQUIVALENT:
        words = f"unchanged {words}"
    return f"{lowered(metric.title)} {words}, median {' → '.join(medians)}"


def _count(arm: ArmFigures) -> str:
    """Return the number of jobs with weight, and of their days."""
    jobs, days = (int(arm.daily.jobs.sum()), arm.daily.days.size) if arm.daily else (0, 0)
    return f"{counted(jobs, 'job')} on {counted(days, 'day')}"


def day_of(moment: datetime) -> str:
    """Return the day of a time in words: '6 July'."""
    local = timezone.localtime(moment)
    return f"{local.day} {local:%B}"


def compared(
    jobs: pl.DataFrame, metrics: Sequence[Metric], changes: Changes, change: Event, now: datetime
) -> Compared:
    """Compare jobs before and after a change.

    Args:
        jobs: of one user, with `started`, `day` (number), `size` (class) and the metrics.
        metrics: the metrics to compare; per node if numbers of nodes differ and the metric exists.
        changes: the change, and others.
        change: the change.
        now: end of the data.
    """
    first = min(jobs["started"], default=now)
    periods = changes.periods(change, (first, now))
    if isinstance(periods, NoPeriods):
        return Compared(change, (change,), {}, periods.reason, change.start, change.end)
    arms = [_within(jobs, *period) for period in (periods.before, periods.after)]
    if pl.concat(arms)["node_count"].n_unique() > 1:
        metrics = [BY_NAME.get(f"{each.name}_per_node", each) for each in metrics]
    names = [each.name for each in metrics]
    sides = [_arm(each, names) for each in arms]
    result = compare(sides, names, redefined=redefined(sides, names, redefinitions()))
    return Compared(
        change,
        tuple(sorted([change, *periods.together], key=lambda each: each.start)),
        {each: result.metrics[each.name] for each in metrics},
        "",
        periods.before[1],
        periods.after[0],
    )


def _within(jobs: pl.DataFrame, start: datetime, end: datetime) -> pl.DataFrame:
    return jobs.filter(pl.col("started").is_between(start, end, closed="left"))


def _arm(jobs: pl.DataFrame, names: Sequence[str]) -> Arm:
    values = {name: jobs[name].fill_null(float("nan")).to_numpy() for name in names}
    same_user = np.zeros(len(jobs), np.int64)
    return Arm(values, jobs["day"].to_numpy(), same_user, jobs["size"].to_numpy())


@dataclass(frozen=True)
class Changes:
    """What may have changed the jobs of a case.

    Args:
        candidates: the mail, the owner's answers and the active mitigations of these jobs since
            then, the latest first.
        others: other mitigations and upgrades of servers, at any time.
    """

    candidates: tuple[Event, ...]
    others: tuple[Event, ...]

    def periods(self, change: Event, extent: Period) -> Periods | NoPeriods:
        """Return the periods before and after one of the candidates.

        Args:
            change: the candidate.
            extent: time of the jobs.
        """
        neighbours = [*(each for each in self.candidates if each != change), *self.others]
        return periods(change, extent, neighbours)


class Log:
    """Answers and mitigations, loaded once for some cases."""

    def __init__(self, cases: Collection[Case]) -> None:
        # Mails name public mitigations only; the others have their effects, too.
        self._surroundings = Surroundings(get_user_model()(is_staff=True))
        self._answers = defaultdict(list)
        fixed = CaseEvent.objects.filter(
            kind=CaseEvent.Kind.ANSWERED,
            by=F("case__owner"),
            text__startswith=answers.FIXED,
            case__in={case.pk for case in cases},
        )
        for case, at in fixed.values_list("case", "at"):
            self._answers[case].append(Event(at, at, _ANSWER))

    def changes(self, case: Case, mailed_at: datetime, now: datetime) -> Changes:
        """Return what may have changed the jobs of a case after a mail about it."""
        neighbours = list(self._surroundings.neighbours(_scope(case), None))
        events = {self._event(each): each for each in neighbours}
        possible = [
            *self._answers[case.pk],
            *(event for event, each in events.items() if self._is_active(each, now)),
        ]
        since = [each for each in possible if mailed_at < each.start and each.end <= now]
        candidates = [Event(mailed_at, mailed_at, _MAIL), *since]
        candidates.sort(key=lambda each: each.end, reverse=True)
        return Changes(tuple(candidates), tuple(e for e in events if e not in candidates))

    def _event(self, neighbour: Neighbour) -> Event:
        mitigation = self._surroundings.mitigations.get(neighbour.key or 0)
        event = neighbour.event
        is_quotable = mitigation is None or mitigation.is_public
        return event if is_quotable else Event(event.start, event.end, _HIDDEN)

    def _is_active(self, neighbour: Neighbour, now: datetime) -> bool:
        """Return whether a mitigation of a user's jobs still applies at a time."""
        mitigation = self._surroundings.mitigations.get(neighbour.key or 0)
        if mitigation is None or "user" not in QueryDict(mitigation.scope):
            return False
        return mitigation.reverted_at is None or mitigation.reverted_at > now


def _scope(case: Case) -> str:
    names = {"user": case.owner, "name": case.application}
    return urlencode({name: value for name, value in names.items() if value})
