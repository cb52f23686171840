"""Populations: jobs by any filters, how their figures spread, and what was found out before.

They are of batch jobs or of PanDA jobs: `Counted` says how those are chosen, and where their
figures are. Nothing after it knows what they are of.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
from django.db.models import (
    Aggregate,
    BinaryField,
    Count,
    F,
    Max,
    Q,
    Value,
)
from django.db.models.functions import NullIf
from django.db.models.lookups import IsNull
from django.http import QueryDict
from django.utils import timezone

from ioportal.analysis.histograms import Histogram, Scale, histogram
from ioportal.analysis.populations import (
    FEWEST,
    Spread,
    coarsened,
    spread,
    without_extremes,
)
from ioportal.jobs.keys import EachOf
from ioportal.jobs.models import Job, JobStatistics, WorkloadJob
from ioportal.jobs.workloads import FIGURES
from ioportal.site.models import Cluster
from ioportal.studies.cache import eyes, kept
from ioportal.studies.filters import BOUNDS, JobFilter
from ioportal.studies.panda_filters import PANDA_BOUNDS, PandaFilter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    import numpy.typing as npt
    from django.contrib.auth.models import AnonymousUser, User
    from django.db.models import QuerySet
    from django.db.models.expressions import Combinable

    from ioportal.analysis.populations import Numbers
    from ioportal.jobs.models import JobQuerySet, WorkloadJobQuerySet

_QUALITIES = tuple(map(str, JobStatistics.Quality))
_SHAPE = 3  # of what is cached: another number whenever the classes below change


@dataclass(frozen=True)
class Counted:
    """What a population counts."""

    name: str  # in addresses
    singular: str
    plural: str
    filter_set: type[JobFilter | PandaFilter]
    model: type[Job | WorkloadJob]
    figures: Callable[[Any, Sequence[str]], Figures]
    bounds: dict[str, tuple[str, str]]  # the metrics that have histograms, as filters name them
    anonymous_filters: frozenset[str]  # by these nobody can be singled out among others
    own: frozenset[str] | None = None  # metrics that are its own; the others are of batch jobs

    def visible_to(self, user: User | AnonymousUser) -> Any:
        """Return those that `user` may see."""
        return self.model.objects.visible_to(user)

    def is_own(self, metric: str) -> bool:
        """Whether a metric is of what is counted, not of a batch job that several may share."""
        return self.own is None or metric in self.own


@dataclass(frozen=True)
class Figures:
    """What is found out of a population: counts, and of each metric the known values, ascending."""

    jobs: int
    simulated: int
    batch_jobs: int  # that stand behind
    by_quality: dict[str, int]  # of the figures of their batch jobs
    known: dict[str, Numbers]
    by_state: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Selection:
    """Jobs by filters in the eyes of somebody, who says what `jobs` may hold.

    `is_anonymous`: they are other people's, of which nothing but figures of many is told.
    """

    counted: Counted
    filters: str  # as in an address
    eyes: str
    jobs: JobQuerySet | WorkloadJobQuerySet
    is_anonymous: bool = False


@dataclass(frozen=True)
class Summary:
    """How the figures of a population spread, by metric; None jobs: too few others to be told.

    A metric that is missing is not told. States are those of PanDA jobs.
    """

    jobs: int | None
    batch_jobs: int
    by_quality: dict[str, int]
    by_state: dict[str, int]
    simulated: bool
    spreads: dict[str, Spread]

    @property
    def failed_share(self) -> float | None:
        """Failed PanDA jobs among those that finished or failed."""
        failed, finished = self.by_state.get("failed", 0), self.by_state.get("finished", 0)
        return failed / (failed + finished) if failed + finished else None


@dataclass(frozen=True)
class Comparison:
    """Populations side by side, and histograms of them in common bins by metric and scale."""

    summaries: tuple[Summary, ...]
    histograms: dict[tuple[str, Scale], Histogram]


def others(user: User, counted: Counted, filters: str) -> Selection:
    """Select all jobs that `user` may not see, by those of the filters that single out nobody.

    Their times are widened to whole days: ranges that slide by a minute would differ by one job.
    """
    anonymous = QueryDict(mutable=True)
    for name, values in QueryDict(filters).lists():
        if name in counted.anonymous_filters:
            anonymous.setlist(name, values)
    form = counted.filter_set(anonymous).form
    if form.is_valid():
        for name, widened in (("start", _day_start), ("end", _day_end)):
            if moment := form.cleaned_data[name]:
                anonymous[name] = widened(moment).isoformat()
    jobs = counted.filter_set(anonymous, queryset=counted.model.objects.hidden_from(user)).qs
    return Selection(counted, anonymous.urlencode(), eyes(user), jobs, is_anonymous=True)


def _day_start(moment: datetime) -> datetime:
    """Return when the day of a moment begins, in the site's zone."""
    return timezone.localtime(moment).replace(hour=0, minute=0, second=0, microsecond=0)


def _day_end(moment: datetime) -> datetime:
    """Return the end of the day that ends at a moment, or holds it."""
    midnight = _day_start(moment)
    return midnight if midnight == moment else midnight + timedelta(days=1)


def compare(selections: Sequence[Selection], metrics: Sequence[str]) -> Comparison:
    """Describe populations of one unit by some metrics; what is known is not computed again."""
    asked = [
        (selected.counted.name, selected.filters, selected.eyes, selected.is_anonymous)
        for selected in selections
    ]
    newest = newest_record(selections[0].counted)
    return kept(
        "populations",
        (_SHAPE, newest, asked, metrics),
        lambda: _compare(selections, metrics),
    )


def newest_record(counted: Counted) -> datetime | None:
    """Return when a PanDA job was recorded or linked last, by which what is kept of them is old.

    That is done by one at a time, so that moments only go up. Of batch jobs it is None: whatever is
    recorded of them has their figures computed anew.
    """
    if counted is BATCH_JOBS:
        return None
    newest: datetime | None = WorkloadJob.objects.aggregate(at=Max("changed_at"))["at"]
    return newest


def _compare(selections: Sequence[Selection], metrics: Sequence[str]) -> Comparison:
    found = [_figures(selected, metrics) for selected in selections]
    histograms = {
        (metric, scale): histogram(
            [
                _drawn(selected, figures, metric)
                for selected, figures in zip(selections, found, strict=True)
            ],
            scale,
            is_coarse=any(selected.is_anonymous for selected in selections),
        )
        for metric in metrics
        for scale in Scale
        if metric in selections[0].counted.bounds
    }
    for number, selected in enumerate(selections):
        if selected.is_anonymous:
            histograms = {key: bars.anonymous(number) for key, bars in histograms.items()}
    summaries = tuple(
        _anonymous_summary(selected.counted, figures)
        if selected.is_anonymous
        else _summary(figures)
        for selected, figures in zip(selections, found, strict=True)
    )
    return Comparison(summaries, histograms)


def _figures(selected: Selection, metrics: Sequence[str]) -> Figures:
    """Compute the figures of a population; all that is said of others follows from coarse ones."""
    figures = selected.counted.figures(selected.jobs, metrics)
    if not selected.is_anonymous:
        return figures
    return replace(figures, known={name: coarsened(of) for name, of in figures.known.items()})


def _drawn(selected: Selection, figures: Figures, metric: str) -> Numbers:
    known = figures.known[metric]
    if not selected.is_anonymous:
        return known
    if figures.batch_jobs < FEWEST or not selected.counted.is_own(metric):
        return known[:0]
    return without_extremes(known)


def _summary(figures: Figures) -> Summary:
    return Summary(
        figures.jobs,
        figures.batch_jobs,
        figures.by_quality,
        figures.by_state,
        figures.simulated > 0,
        {
            metric: spread(known, figures.jobs - known.size)
            for metric, known in figures.known.items()
        },
    )


def _anonymous_summary(counted: Counted, figures: Figures) -> Summary:
    """Tell of other people's jobs what stands for many batch jobs: one may hold hundreds."""
    if figures.batch_jobs < FEWEST:
        return Summary(None, 0, {}, {}, figures.simulated > 0, {})
    told = {
        metric: found.anonymous()
        for metric, found in _summary(figures).spreads.items()
        if counted.is_own(metric)
    }
    return Summary(figures.jobs, figures.batch_jobs, {}, {}, figures.simulated > 0, told)


_WIRE = {"FloatField": ">f8", "IntegerField": ">i4", "BigIntegerField": ">i8"}
_SEND = {">f8": "float8send", ">i4": "int4send", ">i8": "int8send"}


class _Packed(Aggregate):
    """The known values of a column, one after the other as the database holds them.

    Row by row it would take ten times as long to hand them over.
    """

    function = "string_agg"
    output_field = BinaryField()

    def __init__(self, column: Combinable | str, wire: str, filter: Q | None = None) -> None:  # noqa: A002  (Django's)
        self.wire = wire
        self.template = f"%(function)s({_SEND[wire]}(%(expressions)s), '')"
        super().__init__(column, filter=filter)

    def unpack(self, text: bytes | None) -> Numbers:
        """Return the values."""
        values: Numbers = np.frombuffer(text or b"", dtype=self.wire).astype(self.wire[1:])
        return values


def _ascending(values: Numbers) -> Numbers:
    values.sort()
    return values


def _column(metric: str) -> tuple[Combinable, str]:
    """Return where the statistics of batch jobs have a metric, and how its values are packed."""
    meta = JobStatistics._meta.get_field(metric)  # noqa: SLF001  (documented meta API)
    # No job has no nodes: it is not known how many.
    column = NullIf(metric, Value(0)) if metric == "node_count" else F(metric)
    return column, _WIRE[meta.get_internal_type()]


def _numbers_of(jobs: JobQuerySet | WorkloadJobQuerySet, **besides: Aggregate) -> dict[str, Any]:
    is_simulated = Q(cluster__in=Cluster.objects.filter(simulated=True))
    return jobs.order_by().aggregate(
        jobs=Count("pk"), simulated=Count("pk", filter=is_simulated), **besides
    )


def known_figures(jobs: JobQuerySet, metrics: Sequence[str]) -> dict[str, Numbers]:
    """Return the known values of batch jobs by metric, ascending."""
    return _known(JobStatistics.objects.filter(job__in=jobs), metrics)[0]


def _known(
    statistics: QuerySet[JobStatistics], metrics: Sequence[str], **besides: Aggregate
) -> tuple[dict[str, Numbers], dict[str, Any]]:
    """Return the known values by metric, ascending, and what else is aggregated."""
    wanted = {metric: _Packed(*_column(metric)) for metric in metrics}
    found = statistics.aggregate(**besides, **wanted)
    return {name: _ascending(packed.unpack(found[name])) for name, packed in wanted.items()}, found


def _of_batch_jobs(jobs: JobQuerySet, metrics: Sequence[str]) -> Figures:
    statistics = JobStatistics.objects.all()
    if jobs.query.has_filters():  # those of all jobs need not be looked up by job
        statistics = statistics.filter(job__in=jobs)
    by_quality = {quality: Count("pk", filter=Q(quality=quality)) for quality in _QUALITIES}
    known, found = _known(statistics, metrics, **by_quality)
    # Counted after them: what arrives in between is unknown, and nothing is known of no job.
    counts = _numbers_of(jobs)
    return Figures(
        **counts,
        batch_jobs=counts["jobs"],
        by_quality={quality: found[quality] for quality in _QUALITIES},
        known=known,
    )


def _of_panda_jobs(jobs: WorkloadJobQuerySet, metrics: Sequence[str]) -> Figures:
    """Each has the whole figures of its batch job, however many share it."""
    inside = _Packed("inside", ">i8")
    keys = _Packed("batch_job", ">i8")
    grouped = jobs.filter(batch_job__isnull=False).order_by().values("batch_job")
    links = grouped.annotate(inside=Count("pk")).aggregate(keys=keys, weights=inside)
    by_job = np.argsort(batch_jobs := keys.unpack(links["keys"]))
    batch_jobs, weights = batch_jobs[by_job], inside.unpack(links["weights"])[by_job]
    shared = _of_their_batch_jobs(batch_jobs, [name for name in metrics if name not in FIGURES])

    def repeated(holders: Numbers) -> npt.NDArray[np.int64]:
        return weights[batch_jobs.searchsorted(holders)].astype(np.int64)

    own = {name: _Packed(FIGURES[name], ">f8") for name in metrics if name in FIGURES}
    states = jobs.order_by().values_list("state").annotate(count=Count("pk"))
    by_state = dict(states.order_by("-count", "state"))
    counts = _numbers_of(jobs, **own)
    known = {name: _ascending(packed.unpack(counts.pop(name))) for name, packed in own.items()}
    for name, (holders, values) in shared.known.items():
        ascending = np.argsort(values)
        known[name] = values[ascending].repeat(repeated(holders[ascending]))
    return Figures(
        **counts,
        batch_jobs=batch_jobs.size,
        by_quality={
            quality: int(repeated(holders).sum()) for quality, holders in shared.by_quality.items()
        },
        known={name: known[name] for name in metrics},
        by_state=by_state,
    )


@dataclass(frozen=True)
class _Shared:
    """Figures of batch jobs, each with the key of its job."""

    by_quality: dict[str, Numbers]  # keys only
    known: dict[str, tuple[Numbers, Numbers]]


def _of_their_batch_jobs(keys: Numbers, metrics: Sequence[str]) -> _Shared:
    wanted = {quality: _Packed("job", ">i8", filter=Q(quality=quality)) for quality in _QUALITIES}
    for metric in metrics:
        column, wire = _column(metric)
        is_known = Q(IsNull(column, rhs=False))
        wanted[f"keys_{metric}"] = _Packed("job", ">i8", filter=is_known)
        wanted[f"values_{metric}"] = _Packed(column, wire)
    texts = JobStatistics.objects.filter(job__in=EachOf(keys.tolist())).aggregate(**wanted)
    found = {name: packed.unpack(texts[name]) for name, packed in wanted.items()}
    return _Shared(
        {quality: found[quality] for quality in _QUALITIES},
        {metric: (found[f"keys_{metric}"], found[f"values_{metric}"]) for metric in metrics},
    )


_ANONYMOUS_FILTERS = frozenset({"cluster", "start", "end"})
BATCH_JOBS = Counted(
    name="jobs",
    singular="job",
    plural="jobs",
    filter_set=JobFilter,
    model=Job,
    figures=_of_batch_jobs,
    bounds=BOUNDS,
    anonymous_filters=_ANONYMOUS_FILTERS | {"queue", "nodes_min", "nodes_max", "state", "quality"},
)
PANDA_JOBS = Counted(
    name="panda",
    singular="PanDA job",
    plural="PanDA jobs",
    filter_set=PandaFilter,
    model=WorkloadJob,
    figures=_of_panda_jobs,
    bounds=PANDA_BOUNDS,
    anonymous_filters=_ANONYMOUS_FILTERS | {"computingsite", "jobstatus"},
    own=frozenset(FIGURES),
)
UNITS = {counted.name: counted for counted in (BATCH_JOBS, PANDA_JOBS)}
