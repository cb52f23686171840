"""Populations: jobs by any filters, how their figures spread, and what was found out before.

What is counted here are batch jobs. Whatever else has figures becomes a population of its own by
giving `_figures` their values: nothing after it knows what they are of.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
from django.core.cache import cache
from django.db.models import Aggregate, BinaryField, Count, Max, Q
from django.db.models.functions import NullIf
from django.http import QueryDict

from ioportal.analysis.histograms import Histogram, Scale, histogram
from ioportal.analysis.populations import FEWEST, Spread, spread, without_extremes
from ioportal.jobs.filters import BOUNDS, JobFilter
from ioportal.jobs.models import Cluster, Job, JobStatistics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.contrib.auth.models import User

    from ioportal.analysis.populations import Numbers
    from ioportal.jobs.models import JobQuerySet

# Of other people's jobs: by these filters nobody can be singled out.
_ANONYMOUS_FILTERS = frozenset(
    {"cluster", "queue", "start", "end", "nodes_min", "nodes_max", "state", "quality"}
)
_QUALITIES = tuple(map(str, JobStatistics.Quality))
_KEPT_S = 600  # for what changes no figure: a job that waits, the name of a cluster
_SHAPE = 1  # of what is cached: another number whenever the classes below change


@dataclass(frozen=True)
class Selection:
    """Jobs by filters in the eyes of somebody, who says what `jobs` may hold.

    `is_anonymous`: they are other people's, of which nothing but figures of many is told.
    """

    filters: str  # as in an address
    eyes: str
    jobs: JobQuerySet
    is_anonymous: bool = False


@dataclass(frozen=True)
class Summary:
    """How the figures of a population spread, by metric; None jobs: too few others to be told."""

    jobs: int | None
    by_quality: dict[str, int]
    simulated: bool
    spreads: dict[str, Spread]


@dataclass(frozen=True)
class Comparison:
    """Populations side by side, and histograms of them in common bins by metric and scale."""

    summaries: tuple[Summary, ...]
    histograms: dict[tuple[str, Scale], Histogram]


def others(user: User, filters: str) -> Selection:
    """Select all jobs that `user` may not see, by those of the filters that single out nobody."""
    kept = QueryDict(mutable=True)
    for name, values in QueryDict(filters).lists():
        if name in _ANONYMOUS_FILTERS:
            kept.setlist(name, values)
    jobs = JobFilter(kept, queryset=Job.objects.hidden_from(user)).qs
    return Selection(kept.urlencode(), eyes(user), jobs, is_anonymous=True)


def compare(selections: Sequence[Selection], metrics: Sequence[str]) -> Comparison:
    """Describe populations by some metrics; what is known already is not computed again.

    Any figure that is computed anew makes a new key: the statistics stage works one at a time, so
    that its moments only go up.
    """
    newest = JobStatistics.objects.aggregate(at=Max("computed_at"))["at"]
    asked = [(selected.filters, selected.eyes, selected.is_anonymous) for selected in selections]
    parts = repr((_SHAPE, newest, asked, metrics))
    key = f"populations:{sha256(parts.encode()).hexdigest()}"
    known: Comparison | None = cache.get(key)
    if known is None:
        known = _compare(selections, metrics)
        cache.set(key, known, _KEPT_S)
    return known


def _compare(selections: Sequence[Selection], metrics: Sequence[str]) -> Comparison:
    found = [_figures(selected.jobs, metrics) for selected in selections]
    histograms = {
        (metric, scale): histogram(
            [
                without_extremes(figures[metric]) if selected.is_anonymous else figures[metric]
                for selected, (_, figures) in zip(selections, found, strict=True)
            ],
            scale,
        )
        for metric in metrics
        for scale in Scale
        if metric in BOUNDS
    }
    for number, selected in enumerate(selections):
        if selected.is_anonymous:
            histograms = {key: bars.anonymous(number) for key, bars in histograms.items()}
    summaries = tuple(
        _summary(counts, figures, is_anonymous=selected.is_anonymous)
        for selected, (counts, figures) in zip(selections, found, strict=True)
    )
    return Comparison(summaries, histograms)


def _summary(counts: dict[str, int], figures: dict[str, Numbers], *, is_anonymous: bool) -> Summary:
    jobs, simulated = counts["jobs"], counts["simulated"] > 0
    if is_anonymous and jobs < FEWEST:
        return Summary(None, {}, simulated, {})
    spreads = {metric: spread(known, jobs - known.size) for metric, known in figures.items()}
    if is_anonymous:
        told = {metric: found.anonymous() for metric, found in spreads.items()}
        return Summary(jobs, {}, simulated, told)
    by_quality = {quality: counts[quality] for quality in _QUALITIES}
    return Summary(jobs, by_quality, simulated, spreads)


class _Known(Aggregate):
    """The known values of a column, one after the other as the database holds them.

    Row by row it would take ten times as long to hand them over.
    """

    function = "string_agg"
    output_field = BinaryField()

    def __init__(self, metric: str) -> None:
        field = JobStatistics._meta.get_field(metric)  # noqa: SLF001  (documented meta API)
        self.wire = _WIRE[field.get_internal_type()]
        super().__init__(
            # No job has no nodes: it is not known how many.
            NullIf(metric, 0) if metric == "node_count" else metric,
            template=f"%(function)s({_SEND[self.wire]}(%(expressions)s), '')",
        )


_WIRE = {"FloatField": ">f8", "IntegerField": ">i4", "BigIntegerField": ">i8"}
_SEND = {">f8": "float8send", ">i4": "int4send", ">i8": "int8send"}


def _figures(
    jobs: JobQuerySet, metrics: Sequence[str]
) -> tuple[dict[str, int], dict[str, Numbers]]:
    """Return counts of the jobs, and the known values of each metric in ascending order."""
    statistics = JobStatistics.objects.all()
    if jobs.query.has_filters():  # those of all jobs need not be looked up by job
        statistics = statistics.filter(job__in=jobs)
    wanted = {metric: _Known(metric) for metric in metrics}
    by_quality = {quality: Count("pk", filter=Q(quality=quality)) for quality in _QUALITIES}
    found: dict[str, Any] = statistics.aggregate(**by_quality, **wanted)
    # Counted after them: what arrives in between is unknown, and nothing is known of no job.
    is_simulated = Q(cluster__in=Cluster.objects.filter(simulated=True))
    counts = jobs.order_by().aggregate(jobs=Count("pk"), simulated=Count("pk", filter=is_simulated))
    figures = {
        metric: np.sort(
            np.frombuffer(found.pop(metric) or b"", dtype=known.wire).astype(known.wire[1:])
        )
        for metric, known in wanted.items()
    }
    return counts | found, figures


def eyes(user: User) -> str:
    """Return what decides which jobs somebody sees."""
    if user.is_staff:
        return "staff"
    return repr((user.get_username(), sorted(user.groups.values_list("name", flat=True))))
