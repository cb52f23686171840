"""Measured effects of mitigations on their expected metrics, or on the main metrics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.http import QueryDict
from django.urls import reverse

from ioportal.changes.analysis.periods import LONGEST, Event
from ioportal.changes.before_after import Surroundings
from ioportal.changes.change_points import MAIN_METRICS, single_step
from ioportal.changes.comparison_sentences import sentence
from ioportal.changes.comparisons import compare_arms, metrics_of
from ioportal.changes.expectations import Finding, together, with_causes
from ioportal.core import ratios
from ioportal.core.formatting import lowered, percent, significant
from ioportal.jobs.analysis.comparison.results import Scale, Verdict
from ioportal.jobs.populations.selections import Selection, kind_in
from ioportal.jobs.trends import RECORDS, completed_per_day
from ioportal.jobs.visibility import visibility_key
from ioportal.load.moved_load import places, rises
from ioportal.metrics import ANY_BY_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import date

    from django.contrib.auth.models import User

    from ioportal.changes.before_after import BeforeAfter
    from ioportal.changes.models import Mitigation
    from ioportal.jobs.analysis.comparison.results import ArmFigures, Effect, MetricComparison
    from ioportal.load.moved_load import Place
    from ioportal.metrics import Metric

_ALWAYS = ("duration_s", "metadata_operations_per_node", "panda_duration_s")  # without expectation
_MANY_UNKNOWN = 0.1  # share of the jobs of a period
_STRONG = 1.25  # ratio of medians from which a change of another metric is named


@dataclass(frozen=True)
class MeasuredEffect:
    """The periods before and after a mitigation, and what changed between them.

    Args:
        mitigation: the mitigation.
        periods: its periods.
        rows: the comparison of the periods by metric; empty: there is nothing to compare.
        single: day and ratio of its own change of the daily medians, if it was measured together
            with others.
        completed_per_day: completed jobs per day before and after.
        places: the load of filesystems and NFS servers before and after, for staff.
    """

    mitigation: Mitigation
    periods: BeforeAfter
    rows: Mapping[str, MetricComparison] = field(default_factory=dict)
    single: tuple[date, float] | None = None
    completed_per_day: tuple[float, ...] = ()
    places: Sequence[Place] = ()

    @property
    def figures(self) -> MetricComparison | None:
        """The comparison of the expected metric; None: not measured."""
        return self.rows.get(self.mitigation.metric)

    @property
    def effect(self) -> Effect | None:
        """The effect on the expected metric, of all that is measured together; None: unknown."""
        return self.figures.effects[0] if self.figures else None

    @property
    def is_measured(self) -> bool:
        """Whether there is a conclusion: on the expected metric, or on any main metric."""
        effects = [self.effect] if self.effect else [effect for _, effect in self._main]
        return any(effect.verdict is not Verdict.REFUSED for effect in effects)

    @property
    def _counted(self) -> tuple[ArmFigures, ...]:
        figures = self.figures or next(iter(self.rows.values()), None)
        return figures.arms if figures else ()

    @property
    def jobs(self) -> tuple[int, ...]:
        """The numbers of jobs before and after that are compared: with known values and weight."""
        return tuple(int(arm.daily.jobs.sum()) if arm.daily else 0 for arm in self._counted)

    @property
    def all_jobs(self) -> tuple[int, ...]:
        """The numbers of all jobs before and after."""
        return tuple(arm.jobs + arm.unknown for arm in self._counted)

    @property
    def compare_query(self) -> str:
        """The query of the comparison of both periods, with everyone else in them."""
        return self._query(control="others")

    @property
    def chart_query(self) -> str:
        """The query of the comparison of both periods alone."""
        return self._query(control="none")

    def _query(self, control: str) -> str:
        arms = [("arm", self.periods.before), ("arm", self.periods.after)]
        return urlencode([*arms, ("control", control), ("mitigation", self.mitigation.pk)])

    @property
    def compare_url(self) -> str:
        """The comparison of both periods; "": nothing to compare."""
        return "" if self.periods.reason else f"{reverse('compare')}?{self.compare_query}"

    @property
    def text(self) -> str:
        """The effect on the expected metric as a sentence, or why there is none."""
        if self.effect:
            return sentence(ANY_BY_NAME[self.mitigation.metric], self.effect)
        return self.periods.reason or "No expected metric."

    @property
    def finding(self) -> Finding | None:
        """The effect on the expected metric, with all that is measured together."""
        if self.effect is None:
            return None
        metric = ANY_BY_NAME[self.mitigation.metric]
        return Finding(self.mitigation, metric, self.effect, self.periods.together)

    @property
    def conclusions(self) -> list[str]:
        """What changed: the expected metric and side effects, or the main metrics; or a reason."""
        if self.finding:
            return [self.finding.text, *self._single, *self._side_effects, *self._moved]
        if not self.rows:
            return [self.text]
        effects = [
            with_causes(sentence(metric, effect), self.periods.together)
            for metric, effect in self._main
            if metric.name in _ALWAYS or effect.is_change
        ]
        if self.completed_per_day:
            before, after = map(significant, self.completed_per_day)
            effects.append(f"Completed jobs per day: {before} before, {after} after.")
        return [*effects, *self._moved]

    @property
    def _main(self) -> list[tuple[Metric, Effect]]:
        kind = kind_in(QueryDict(self.mitigation.scope))
        return [
            (ANY_BY_NAME[name], self.rows[name].effects[0])
            for name in MAIN_METRICS[kind.name]
            if name in self.rows and name != self.mitigation.metric
        ]

    @property
    def _single(self) -> Iterator[str]:
        if self.single is None:
            return
        day, ratio = self.single
        expected = self.mitigation.expected
        suffix = f"; expected: {expected.in_words(plural=False)}" if expected else ""
        yield (
            f"This mitigation alone: daily medians {ratios.measured(ratio)} on {day:%-d %B} "
            f"(from daily medians, without an interval{suffix})."
        )

    @property
    def _side_effects(self) -> Iterator[str]:
        for metric, effect in self._main:
            ratio = effect.estimate if effect.scale is Scale.RATIO else None
            if effect.is_change and (not ratio or max(ratio, 1 / ratio) >= _STRONG):
                yield f"At the same time: {lowered(sentence(metric, effect))}"

    @property
    def _moved(self) -> list[str]:
        return [f"At the same time: {lowered(rise)}" for rise in rises(self.places, 1)]

    @property
    def remarks(self) -> list[str]:
        """Other possible explanations of the effect, and missing data."""
        causes = [f"Measured {together([each])}." for each in self.periods.together]
        return [*causes, *self.missing]

    @property
    def missing(self) -> list[str]:
        """Gaps in the data, and unknown values."""
        unknown = []
        if self.figures:
            title = ANY_BY_NAME[self.mitigation.metric].title
            for name, arm in zip(("before", "after"), self.figures.arms, strict=True):
                total = arm.jobs + arm.unknown
                if arm.unknown > _MANY_UNKNOWN * total:
                    share = percent(arm.unknown / total, 0)
                    unknown.append(f"{title}: unknown for {share} % of the jobs {name}.")
        return [*self.periods.gaps, *unknown]


def measure(mitigations: Iterable[Mitigation], user: User) -> list[MeasuredEffect]:
    """Compare the jobs before and after mitigations, as far as `user` may see them; cached."""
    surroundings = Surroundings(user)
    return [_measure(each, surroundings.before_after(each), user) for each in mitigations]


def _measure(mitigation: Mitigation, periods: BeforeAfter, user: User) -> MeasuredEffect:
    if periods.reason:
        return MeasuredEffect(mitigation, periods)
    arms = [selection(query, user) for query in (periods.before, periods.after)]
    names = [metric.name for metric in metrics_of(arms[0].kind)]
    rows = compare_arms(arms, names).result.metrics
    scope = selection(mitigation.scope, user)
    load = places(periods.spans) if user.is_staff else ()
    if mitigation.metric not in rows:
        completed = tuple(
            completed_per_day(scope.jobs, RECORDS[scope.kind.name], *span) for span in periods.spans
        )
        return MeasuredEffect(mitigation, periods, rows, completed_per_day=completed, places=load)
    single = _single_step(mitigation, periods, scope)
    return MeasuredEffect(mitigation, periods, rows, single, places=load)


def _single_step(
    mitigation: Mitigation, periods: BeforeAfter, scope: Selection
) -> tuple[date, float] | None:
    """Return day and ratio of the own change of a mitigation among others; None: unknown."""
    if not periods.together:
        return None
    own = Event(mitigation.started_at, mitigation.complete_at, mitigation.title)
    step = single_step(
        scope.kind,
        scope.jobs,
        ANY_BY_NAME[mitigation.metric],
        (periods.spans[0][0] - LONGEST, periods.spans[1][1] + LONGEST),
        [own, *(each.event for each in periods.together)],
    )
    return step and (step[0], step[1].ratio)


def selection(query: str, user: User) -> Selection:
    """Return the records of a query that `user` may see."""
    parameters = QueryDict(query)
    kind = kind_in(parameters)
    jobs = kind.filter_set(parameters, queryset=kind.visible_to(user)).qs
    return Selection(kind, query, visibility_key(user), jobs)
