"""The compared arms of a URL: their jobs, figures and effects, as pages and charts read them."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ioportal.changes.arm_details import arm_details, arm_jobs, metric_details
from ioportal.changes.before_after import Surroundings
from ioportal.changes.comparison_conclusions import by_change
from ioportal.changes.comparisons import compare_arms, metrics_of, without_overlaps
from ioportal.core.formatting import lowered
from ioportal.core.time_ranges import TimeRange
from ioportal.jobs import trends as questions
from ioportal.jobs.populations.population_values import Covariate
from ioportal.jobs.populations.selections import BATCH_JOBS, pending_statistics
from ioportal.jobs.trends import BATCH_RECORDS, PANDA_RECORDS
from ioportal.web.comparisons.query import ComparisonQuery
from ioportal.web.populations.references import read

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import User
    from django.http import QueryDict

    from ioportal.changes.arm_details import ArmDetails, MetricDetails
    from ioportal.changes.before_after import Neighbour
    from ioportal.changes.comparisons import ArmComparison
    from ioportal.jobs.analysis.comparison.results import Comparison, MetricComparison
    from ioportal.jobs.populations.selections import JobKind
    from ioportal.metrics import Metric
    from ioportal.web.comparisons.arms import Arm

_COVARIATES = {
    Covariate.NODES: "node counts",
    Covariate.QUEUE: "queues",
    Covariate.USER: "users",
    Covariate.APPLICATION: "applications",
    Covariate.NONE: "nothing",
}


class ComparedArms:
    """Two to four arms, metric by metric, as far as `user` may see their jobs."""

    covariates = _COVARIATES

    def __init__(self, user: User, query: QueryDict) -> None:
        self.user = user
        self.query = ComparisonQuery(user, query)
        self._given = query

    @property
    def arms(self) -> list[Arm]:
        """The arms; the first is the reference."""
        return self.query.arms

    @property
    def is_complete(self) -> bool:
        """Whether there is something to compare."""
        return self.query.is_complete

    @property
    def kind(self) -> JobKind:
        """Batch jobs or PanDA jobs."""
        return self.arms[0].kind if self.arms else BATCH_JOBS

    @property
    def names(self) -> list[str]:
        """Names of the arms."""
        return [arm.name for arm in self.arms]

    @property
    def letters(self) -> list[str]:
        """Column names of the arms in exports."""
        return [f"arm{arm.number + 1}" for arm in self.arms]

    @cached_property
    def span(self) -> TimeRange | None:
        """The time of all arms; None without jobs."""
        records = BATCH_RECORDS if self.kind is BATCH_JOBS else PANDA_RECORDS
        bounds = []
        for arm in self.arms:
            extent = None
            if not (arm.start and arm.end):
                extent = questions.extent(arm_jobs(arm.selection), records)
            start = arm.start or (extent and extent[0])
            end = arm.end or (extent and extent[1])
            if start and end:
                bounds.append((start, end))
        if not bounds:
            return None
        return TimeRange(min(start for start, _ in bounds), max(end for _, end in bounds))

    @cached_property
    def upgrades(self) -> list[tuple[datetime, str]]:
        """Upgrades of servers in the time of all arms."""
        return questions.upgrades(self.span.start, self.span.end) if self.span else []

    @property
    def whole_population(self) -> Any:
        """The jobs of any time of the first arm's filters."""
        return read(self.user, self.arms[0].query() or "user=").selection.jobs

    @cached_property
    def _comparison(self) -> ArmComparison:
        compared = compare_arms(
            [arm.selection for arm in self.arms],
            [metric.name for metric in self._metrics],
            control=self.query.control_selections,
            covariate=self.query.covariate,
            margin=self.query.margin,
        )
        return without_overlaps(compared, self.details.shared)

    @property
    def is_contrast(self) -> bool:
        """Whether the arms are different jobs, instead of one population over time."""
        return not self.query.is_before_and_after

    @property
    def result(self) -> Comparison:
        """The figures and effects of all metrics."""
        return self._comparison.result

    @property
    def _metrics(self) -> tuple[Metric, ...]:
        """The metrics; for PanDA jobs also the metrics of the batch jobs that ran them."""
        return tuple(
            metric
            if self.kind.is_own(metric.name)
            else replace(metric, title=f"Pilot: {lowered(metric.title)}")
            for metric in metrics_of(self.kind)
        )

    @cached_property
    def compared(self) -> list[tuple[Metric, MetricComparison]]:
        """Metrics that are known in any arm."""
        rows = ((metric, self.result.metrics[metric.name]) for metric in self._metrics)
        return [(metric, row) for metric, row in rows if any(arm.jobs for arm in row.arms)]

    @property
    def arm_summaries(self) -> list[tuple[Arm, Any]]:
        """The arms with their numbers of jobs, days and users."""
        return list(zip(self.arms, self.result.arms, strict=True))

    @property
    def weighting(self) -> str:
        """How figures are weighted, as the end of a sentence."""
        if not any(arm.raw for _, row in self.compared for arm in row.arms):
            return ""
        return f", weighted to the same mix of {self.strata}"

    @property
    def strata(self) -> str:
        """What divides the jobs into strata: 'node counts'."""
        return _COVARIATES[self._comparison.covariate]

    @cached_property
    def neighbours(self) -> list[Neighbour]:
        """Other mitigations, and upgrades, that may concern the jobs of an arm."""
        surroundings = Surroundings(self.user)
        by_event = {
            each.event: each
            for arm in self.arms
            for each in surroundings.neighbours(arm.query(), self.query.mitigation)
        }
        return list(by_event.values())

    @property
    def other_mitigations(self) -> list[Neighbour]:
        """Mitigations that may explain a difference, other than the one that is compared."""
        span = self.span
        return [
            each
            for each in self.neighbours
            if each.key and span and each.event.end > span.start and each.event.start < span.end
        ]

    @property
    def another_mitigation(self) -> str:
        """What the other mitigations are called."""
        return "Another mitigation" if self.query.mitigation else "Mitigation"

    @cached_property
    def pending_of_arms(self) -> list[int]:
        """The number of jobs of each arm whose statistics are pending."""
        return [
            pending_statistics(self.kind, arm_jobs(arm.selection), flags=False) for arm in self.arms
        ]

    @cached_property
    def metric(self) -> Metric:
        """The metric of the charts: of the URL, the expected one, or the one that changed most."""
        known = {metric.name: metric for metric, _ in self.compared}
        expected = self.query.mitigation.metric if self.query.mitigation else ""
        for name in (self.query.metric, expected):
            if name in known:
                return known[name]
        ranked = by_change((metric, row.effects[0]) for metric, row in self.compared)
        return ranked[0][0] if ranked else next(iter(known.values()))

    @property
    def selected(self) -> MetricComparison:
        """The figures of the metric of the charts."""
        return self.result.metrics[self.metric.name]

    @cached_property
    def details(self) -> ArmDetails:
        """Shared jobs and operations of the arms."""
        return arm_details([arm.selection for arm in self.arms])

    @cached_property
    def metric_details(self) -> MetricDetails:
        """The values of the metric of the charts."""
        return metric_details([arm.selection for arm in self.arms], self.metric)

    @property
    def has_control(self) -> bool:
        """Whether the arms are compared with a control."""
        return bool(self.result.control_arms)
