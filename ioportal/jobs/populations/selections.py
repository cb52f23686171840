"""Populations of batch jobs or PanDA jobs: selection by filters, and comparison of their figures.

`JobKind` describes both kinds; the code after it treats them alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from django.db.models import (
    Max,
)
from django.http import QueryDict
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from ioportal.core import visible_text
from ioportal.jobs.analysis.anonymity import coarsened, rounded_count, without_extremes
from ioportal.jobs.analysis.histograms import Histogram, Scale, histogram
from ioportal.jobs.analysis.spread import Spread, spread
from ioportal.jobs.cache import cached, statistics_version
from ioportal.jobs.job_filters import BOUNDS, JobFilter
from ioportal.jobs.models import DirtyEvidence, DirtyStatistics, Job, WorkloadJob
from ioportal.jobs.panda_filters import PANDA_BOUNDS, PandaFilter
from ioportal.jobs.panda_jobs import FIGURES
from ioportal.jobs.populations.population_figures import (
    ALL_JOBS,
    Figures,
    batch_job_figures,
    panda_job_figures,
)
from ioportal.jobs.populations.population_values import batch_job_values, panda_job_values
from ioportal.jobs.visibility import visibility_key

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from django.contrib.auth.models import AnonymousUser, User

    from ioportal.jobs.analysis.anonymity import Numbers
    from ioportal.jobs.models import JobQuerySet, WorkloadJobQuerySet
    from ioportal.jobs.populations.population_values import Covariate, JobValues

_CACHE_VERSION = 6  # to be changed with the classes below


class _FiguresOf(Protocol):
    """Reads the figures of jobs; owners only if other users' jobs are among them."""

    def __call__(self, jobs: Any, metrics: Sequence[str], *, owners: bool) -> Figures: ...


@dataclass(frozen=True)
class JobKind:
    """A kind of jobs: batch jobs or PanDA jobs."""

    name: str  # used in addresses
    singular: str
    plural: str
    filter_set: type[JobFilter | PandaFilter]
    model: type[Job | WorkloadJob]
    figures: _FiguresOf
    values: Callable[[Any, Sequence[str], Covariate], JobValues]
    bounds: dict[str, tuple[str, str]]  # metrics with histograms, and their filters
    anonymous_filters: frozenset[str]  # filters that cannot single out another user
    own: frozenset[str] | None = None  # metrics of PanDA jobs; others belong to batch jobs

    def visible_to(self, user: User | AnonymousUser) -> Any:
        """Return the jobs that `user` may see."""
        return self.model.objects.visible_to(user)

    def is_own(self, metric: str) -> bool:
        """Whether a metric belongs to the job itself, not to a shared batch job."""
        return self.own is None or metric in self.own


@dataclass(frozen=True)
class Selection:
    """Jobs selected by filters, as visible to a user.

    `is_anonymous`: jobs of other users, for which only aggregates are shown.
    """

    kind: JobKind
    filters: str  # query string
    visibility_key: str
    jobs: JobQuerySet | WorkloadJobQuerySet
    is_anonymous: bool = False
    excluded: str = ""  # query string of jobs that are left out

    @property
    def key(self) -> tuple[str, str, str, bool, str]:
        """The key of the jobs in caches."""
        return self.kind.name, self.filters, self.visibility_key, self.is_anonymous, self.excluded


@dataclass(frozen=True)
class Summary:
    """Spread of the figures of a population by metric.

    `jobs` is None if an anonymous population is too small. Suppressed metrics are absent. States
    are states of PanDA jobs.
    """

    jobs: int | None
    batch_jobs: int
    by_quality: dict[str, int]
    by_state: dict[str, int]
    simulated: bool
    spreads: dict[str, Spread]

    @property
    def failed_share(self) -> float | None:
        """Failed PanDA jobs among finished and failed jobs."""
        failed, finished = self.by_state.get("failed", 0), self.by_state.get("finished", 0)
        return failed / (failed + finished) if failed + finished else None


@dataclass(frozen=True)
class Comparison:
    """Summaries of populations, and their histograms in common bins by metric and scale."""

    summaries: tuple[Summary, ...]
    histograms: dict[tuple[str, Scale], Histogram]


def other_jobs(user: User, kind: JobKind, filters: str) -> Selection:
    """Select the jobs that `user` may not see, with anonymous filters only.

    Ranges are widened to whole days: sliding a range by a minute could isolate a single job.
    """
    anonymous = QueryDict(mutable=True)
    for name, values in QueryDict(filters).lists():
        if name in kind.anonymous_filters:
            anonymous.setlist(name, values)
    form = kind.filter_set(anonymous).form
    if form.is_valid():
        for name, widened in (("start", day_start), ("end", day_end)):
            if time := form.cleaned_data[name]:
                anonymous[name] = widened(time).isoformat()
    jobs = kind.filter_set(anonymous, queryset=kind.model.objects.hidden_from(user)).qs
    return Selection(kind, anonymous.urlencode(), visibility_key(user), jobs, is_anonymous=True)


def midnight(day: date) -> datetime:
    """Return the start of a day in the site's zone."""
    return timezone.make_aware(datetime.combine(day, time()))


def day_start(time: datetime) -> datetime:
    """Return the latest midnight at or before a time, in the site's zone."""
    return timezone.localtime(time).replace(hour=0, minute=0, second=0, microsecond=0)


def day_end(time: datetime) -> datetime:
    """Return the next midnight at or after a time, in the site's zone."""
    midnight = day_start(time)
    return midnight if midnight == time else midnight + timedelta(days=1)


def compare(selections: Sequence[Selection], metrics: Sequence[str]) -> Comparison:
    """Compare populations of one kind by metrics; results are cached."""
    return cached(
        "populations",
        (_CACHE_VERSION, [selected.key for selected in selections], metrics),
        lambda: _compare(selections, metrics),
        lambda: figures_version(selections[0].kind),
    )


def figures_version(kind: JobKind) -> tuple[datetime | None, ...]:
    """Return the version of the figures of all jobs of a kind: times of their last changes.

    Each change of a batch job recomputes its statistics. PanDA jobs are changed by one worker at a
    time, so that the time of the last change only grows.
    """
    if kind is BATCH_JOBS:
        return (statistics_version(),)
    return (statistics_version(), WorkloadJob.objects.aggregate(at=Max("changed_at"))["at"])


def _compare(selections: Sequence[Selection], metrics: Sequence[str]) -> Comparison:
    all_figures = [_figures(selected, metrics) for selected in selections]
    histograms = {
        (metric, scale): histogram(
            [
                _histogram_values(selected, figures, metric)
                for selected, figures in zip(selections, all_figures, strict=True)
            ],
            scale,
            is_coarse=any(selected.is_anonymous for selected in selections),
        )
        for metric in metrics
        for scale in Scale
        if metric in selections[0].kind.bounds
    }
    for number, selected in enumerate(selections):
        if selected.is_anonymous:
            histograms = {key: bars.anonymous(number) for key, bars in histograms.items()}
    summaries = tuple(
        _anonymous_summary(figures) if selected.is_anonymous else _summary(figures)
        for selected, figures in zip(selections, all_figures, strict=True)
    )
    return Comparison(summaries, histograms)


def _figures(selected: Selection, metrics: Sequence[str]) -> Figures:
    """Compute the figures of a population; figures of other users are coarsened."""
    figures = selected.kind.figures(selected.jobs, metrics, owners=selected.is_anonymous)
    if not selected.is_anonymous:
        return figures
    values = {name: coarsened(values) for name, values in figures.values.items()}
    return replace(figures, values=values)


def _histogram_values(selected: Selection, figures: Figures, metric: str) -> Numbers:
    values = figures.values[metric]
    if not selected.is_anonymous:
        return values
    if not {ALL_JOBS, metric} <= figures.anonymous:
        return values[:0]
    return without_extremes(values)


def _summary(figures: Figures) -> Summary:
    return Summary(
        figures.jobs,
        figures.batch_jobs,
        figures.by_quality,
        figures.by_state,
        figures.simulated > 0,
        {
            metric: spread(values, figures.jobs - values.size)
            for metric, values in figures.values.items()
        },
    )


def _anonymous_summary(figures: Figures) -> Summary:
    """Return the counts, and the metrics whose known values hide the owners of their jobs."""
    if ALL_JOBS not in figures.anonymous:
        return Summary(None, 0, {}, {}, figures.simulated > 0, {})
    spreads = {
        metric: metric_spread.anonymous()
        for metric, metric_spread in _summary(figures).spreads.items()
        if metric in figures.anonymous
    }
    jobs, batch_jobs = rounded_count(figures.jobs), rounded_count(figures.batch_jobs)
    return Summary(jobs, batch_jobs, {}, {}, figures.simulated > 0, spreads)


_ANONYMOUS_FILTERS = frozenset({"cluster", "start", "end"})
BATCH_JOBS = JobKind(
    name="jobs",
    singular="job",
    plural="jobs",
    filter_set=JobFilter,
    model=Job,
    figures=batch_job_figures,
    values=batch_job_values,
    bounds=BOUNDS,
    anonymous_filters=_ANONYMOUS_FILTERS | {"queue", "nodes_min", "nodes_max", "state", "quality"},
)
PANDA_JOBS = JobKind(
    name="panda",
    singular="PanDA job",
    plural="PanDA jobs",
    filter_set=PandaFilter,
    model=WorkloadJob,
    figures=panda_job_figures,
    values=panda_job_values,
    bounds=PANDA_BOUNDS,
    anonymous_filters=_ANONYMOUS_FILTERS | {"computingsite", "jobstatus"},
    own=frozenset(FIGURES),
)
JOB_KINDS = {kind.name: kind for kind in (BATCH_JOBS, PANDA_JOBS)}


def kind_in(query: QueryDict) -> JobKind:
    """Return the unit of a query; an invalid one means batch jobs."""
    return JOB_KINDS.get(query.get("unit", ""), BATCH_JOBS)


def population_text(query: str, user: User | None = None) -> str:
    """Return a population as text: 'user: alice; state: failed'."""
    parameters = QueryDict(query)
    kind = kind_in(parameters)
    filters = filters_text(kind, query)
    if not filters:
        return f"{'All' if user is None or user.is_staff else 'Your'} {kind.plural}"
    return filters if kind is BATCH_JOBS else f"{kind.plural}, {filters}"


def filters_text(kind: JobKind, query: str) -> str:
    """Return the filters of a query as text."""
    filters = kind.filter_set.base_filters
    return "; ".join(
        f"{filters[name].label.lower()}: {', '.join(map(_value_text, values))}"
        for name, values in QueryDict(query).lists()
        if name in filters
    )


def _value_text(value: str) -> str:
    """Return the value of a filter as text; times on the site's clock."""
    try:
        moment = parse_datetime(value)
        if moment and timezone.is_aware(moment):
            moment = timezone.localtime(moment)
    except (ValueError, OverflowError):
        moment = None
    if moment is None:
        return visible_text.visible(value)
    return f"{moment:%Y-%m-%d %H:%M:%S}".removesuffix(":00")


def pending_statistics(kind: JobKind, jobs: Any, *, flags: bool = True) -> int:
    """Return the number of ended jobs with outdated statistics. Running ones always have such.

    Args:
        kind: of the jobs.
        jobs: their QuerySet.
        flags: whether jobs with outdated flags count, too.
    """
    prefix = "" if kind is BATCH_JOBS else "batch_job__"
    pending = DirtyStatistics.objects.order_by().values("job_id")
    if flags:
        pending = pending.union(DirtyEvidence.objects.order_by().values("job_id"), all=True)
    ended = jobs.filter(**{f"{prefix}pk__in": pending, f"{prefix}ended_at__isnull": False})
    return int(ended.order_by().count())
