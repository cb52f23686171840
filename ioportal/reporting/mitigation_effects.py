"""Measured effects of mitigations on their expected metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.http import QueryDict
from django.urls import reverse

from ioportal.analysis.metrics import METRICS, PANDA_METRICS
from ioportal.reporting.comparison_sentences import sentence
from ioportal.studies.before_after import Surroundings
from ioportal.studies.cache import visibility_key
from ioportal.studies.comparisons import compare_arms
from ioportal.studies.populations import Selection, kind_in

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.contrib.auth.models import User

    from ioportal.analysis.comparison.results import Effect, MetricComparison
    from ioportal.studies.before_after import BeforeAfter
    from ioportal.studies.models import Mitigation

_METRICS = {metric.name: metric for metric in (*METRICS, *PANDA_METRICS)}


@dataclass(frozen=True)
class MeasuredEffect:
    """The periods before and after a mitigation, and its effect on its expected metric."""

    mitigation: Mitigation
    periods: BeforeAfter
    figures: MetricComparison | None  # None: it has no metric, or there is nothing to compare

    @property
    def effect(self) -> Effect | None:
        """The effect; None: not measured."""
        return self.figures.effects[0] if self.figures else None

    @property
    def jobs(self) -> tuple[int, ...]:
        """The numbers of jobs with known values before and after."""
        return tuple(arm.jobs for arm in self.figures.arms) if self.figures else ()

    @property
    def compare_query(self) -> str:
        """The query of the comparison of both periods, with everyone else in them."""
        arms = [("arm", self.periods.before), ("arm", self.periods.after)]
        return urlencode([*arms, ("control", "others"), ("mitigation", self.mitigation.pk)])

    @property
    def compare_url(self) -> str:
        """The comparison of both periods; "": nothing to compare."""
        return "" if self.periods.reason else f"{reverse('compare')}?{self.compare_query}"

    @property
    def text(self) -> str:
        """The effect as a sentence, or why there is none."""
        if self.effect:
            return sentence(_METRICS[self.mitigation.metric], self.effect)
        return self.periods.reason or "No expected metric."


def measure(mitigations: Iterable[Mitigation], user: User) -> list[MeasuredEffect]:
    """Compare the jobs before and after mitigations, as far as `user` may see them; cached."""
    surroundings = Surroundings(user)
    return [_measure(each, surroundings.before_after(each), user) for each in mitigations]


def _measure(mitigation: Mitigation, periods: BeforeAfter, user: User) -> MeasuredEffect:
    metric = mitigation.metric
    if periods.reason or metric not in _METRICS:
        return MeasuredEffect(mitigation, periods, None)
    arms = [_selection(query, user) for query in (periods.before, periods.after)]
    return MeasuredEffect(mitigation, periods, compare_arms(arms, [metric]).result.metrics[metric])


def _selection(query: str, user: User) -> Selection:
    parameters = QueryDict(query)
    kind = kind_in(parameters)
    jobs = kind.filter_set(parameters, queryset=kind.visible_to(user)).qs
    return Selection(kind, query, visibility_key(user), jobs)
