"""The figures of populations of batch jobs and PanDA jobs, read from the database by column."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np
from django.db.models import Count, F, Q
from django.db.models.lookups import IsNull

from ioportal.jobs.analysis.anonymity import hides_owners
from ioportal.jobs.expressions import EachOf, Packed, metric_column
from ioportal.jobs.models import JobStatistics
from ioportal.jobs.panda_jobs import FIGURES
from ioportal.site.models import Cluster

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt
    from django.db.models import Aggregate, QuerySet
    from django.db.models.expressions import Combinable

    from ioportal.jobs.analysis.anonymity import Numbers
    from ioportal.jobs.models import JobQuerySet, WorkloadJobQuerySet

ALL_JOBS = ""  # among metrics: the jobs themselves
_QUALITIES = tuple(map(str, JobStatistics.Quality))


@dataclass(frozen=True)
class Figures:
    """Counts of a population, and the known values of each metric in ascending order."""

    jobs: int
    simulated: int
    batch_jobs: int  # distinct batch jobs of PanDA jobs
    by_quality: dict[str, int]  # number of jobs by data quality of the batch job
    values: dict[str, Numbers]
    # Metrics whose known values hide the owners of their jobs, and `ALL_JOBS`; empty: not read.
    anonymous: frozenset[str]
    by_state: dict[str, int] = field(default_factory=dict)


def _ascending(values: Numbers) -> Numbers:
    values.sort()
    return values


def _counts(jobs: JobQuerySet | WorkloadJobQuerySet, **others: Aggregate) -> dict[str, Any]:
    """Return the counts of jobs, and other aggregates."""
    is_simulated = Q(cluster__in=Cluster.objects.filter(simulated=True))
    return jobs.order_by().aggregate(
        jobs=Count("pk"), simulated=Count("pk", filter=is_simulated), **others
    )


def _anonymous(
    jobs: JobQuerySet | WorkloadJobQuerySet,
    owner: str,
    columns: Mapping[str, Combinable],
    batch_jobs: Sequence[int] | None = None,
) -> frozenset[str]:
    """Return the names of the columns whose known values hide the owners of their jobs.

    Args:
        jobs: jobs of other users.
        owner: column of the owner.
        columns: columns by name.
        batch_jobs: number of batch jobs with a known value of each; None: each job is one.
    """
    known = {f"known_{name}": Count(column) for name, column in columns.items()}
    rows = jobs.order_by().values_list(owner).annotate(**known)
    by_owner = np.array([counts for _, *counts in rows], int).reshape(-1, len(columns))
    total = by_owner.sum(axis=0)
    are_hidden = hides_owners(
        total if batch_jobs is None else np.array(batch_jobs),
        np.count_nonzero(by_owner, axis=0),
        by_owner.max(axis=0, initial=0),
        total,
    )
    return frozenset(compress(columns, are_hidden))


def metric_values(jobs: JobQuerySet, metrics: Sequence[str]) -> dict[str, Numbers]:
    """Return the known values of batch jobs by metric, ascending."""
    return _metric_values(JobStatistics.objects.filter(job__in=jobs), metrics)[0]


def _metric_values(
    statistics: QuerySet[JobStatistics], metrics: Sequence[str], **others: Aggregate
) -> tuple[dict[str, Numbers], dict[str, Any]]:
    """Return the known values by metric, ascending, and the results of all aggregates."""
    columns = {metric: Packed(*metric_column(metric)) for metric in metrics}
    results = statistics.aggregate(**others, **columns)
    values = {name: _ascending(packed.unpack(results[name])) for name, packed in columns.items()}
    return values, results


def batch_job_figures(jobs: JobQuerySet, metrics: Sequence[str], *, owners: bool) -> Figures:
    """Return the figures of batch jobs; with `owners`, which of them hide their owners."""
    statistics = JobStatistics.objects.all()
    if jobs.query.has_filters():  # without filters a join is unnecessary
        statistics = statistics.filter(job__in=jobs)
    by_quality = {quality: Count("pk", filter=Q(quality=quality)) for quality in _QUALITIES}
    values, results = _metric_values(statistics, metrics, **by_quality)
    # Counted afterwards: a job that arrives in between has unknown values.
    counts = _counts(jobs)
    columns = {ALL_JOBS: F("pk")} | {name: F(f"statistics__{name}") for name in metrics}
    return Figures(
        **counts,
        batch_jobs=counts["jobs"],
        by_quality={quality: results[quality] for quality in _QUALITIES},
        values=values,
        anonymous=_anonymous(jobs, "owner", columns) if owners else frozenset(),
    )


def panda_job_figures(
    jobs: WorkloadJobQuerySet, metrics: Sequence[str], *, owners: bool
) -> Figures:
    """Return the figures of PanDA jobs; each has all figures of its batch job.

    These reveal batch jobs, of which a few may have hundreds of jobs: they hide no owner.
    """
    inside = Packed("inside", ">i8")
    keys = Packed("batch_job", ">i8")
    grouped = jobs.filter(batch_job__isnull=False).order_by().values("batch_job")
    links = grouped.annotate(inside=Count("pk")).aggregate(keys=keys, weights=inside)
    by_job = np.argsort(batch_jobs := keys.unpack(links["keys"]))
    batch_jobs, weights = batch_jobs[by_job], inside.unpack(links["weights"])[by_job]
    shared = _shared_figures(batch_jobs, [name for name in metrics if name not in FIGURES])

    def repeated(holders: Numbers) -> npt.NDArray[np.int64]:
        return weights[batch_jobs.searchsorted(holders)].astype(np.int64)

    columns = {ALL_JOBS: F("pk")} | {name: FIGURES[name] for name in metrics if name in FIGURES}
    own = {name: Packed(column, ">f8") for name, column in columns.items() if name in FIGURES}
    holders_of = {
        f"holders_{name}": Count("batch_job", distinct=True, filter=Q(IsNull(column, rhs=False)))
        for name, column in columns.items()
        if owners
    }
    states = jobs.order_by().values_list("state").annotate(count=Count("pk"))
    by_state = dict(states.order_by("-count", "state"))
    counts = _counts(jobs, **own, **holders_of)
    holders = [counts.pop(name) for name in holders_of]
    values = {name: _ascending(packed.unpack(counts.pop(name))) for name, packed in own.items()}
    for name, (keys_of_values, shared_values) in shared.values.items():
        ascending = np.argsort(shared_values)
        values[name] = shared_values[ascending].repeat(repeated(keys_of_values[ascending]))
    return Figures(
        **counts,
        batch_jobs=batch_jobs.size,
        by_quality={
            quality: int(repeated(holders).sum()) for quality, holders in shared.by_quality.items()
        },
        values={name: values[name] for name in metrics},
        anonymous=_anonymous(jobs, "user", columns, holders) if owners else frozenset(),
        by_state=by_state,
    )


@dataclass(frozen=True)
class _Shared:
    """Keys of batch jobs by quality; keys and values by metric."""

    by_quality: dict[str, Numbers]
    values: dict[str, tuple[Numbers, Numbers]]


def _shared_figures(keys: Numbers, metrics: Sequence[str]) -> _Shared:
    columns = {quality: Packed("job", ">i8", filter=Q(quality=quality)) for quality in _QUALITIES}
    for metric in metrics:
        column, wire = metric_column(metric)
        is_known = Q(IsNull(column, rhs=False))
        columns[f"keys_{metric}"] = Packed("job", ">i8", filter=is_known)
        columns[f"values_{metric}"] = Packed(column, wire)
    results = JobStatistics.objects.filter(job__in=EachOf(keys.tolist())).aggregate(**columns)
    unpacked = {name: packed.unpack(results[name]) for name, packed in columns.items()}
    return _Shared(
        {quality: unpacked[quality] for quality in _QUALITIES},
        {metric: (unpacked[f"keys_{metric}"], unpacked[f"values_{metric}"]) for metric in metrics},
    )
