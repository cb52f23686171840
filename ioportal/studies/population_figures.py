"""The figures of populations of batch jobs and PanDA jobs, read from the database by column."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from django.db.models import Count, Q
from django.db.models.lookups import IsNull

from ioportal.jobs.keys import EachOf
from ioportal.jobs.models import JobStatistics
from ioportal.jobs.panda_jobs import FIGURES
from ioportal.site.models import Cluster
from ioportal.studies.packed import Hash, Packed, metric_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    from django.db.models import Aggregate, QuerySet

    from ioportal.analysis.populations import Integers, Numbers
    from ioportal.jobs.models import JobQuerySet, WorkloadJobQuerySet

_QUALITIES = tuple(map(str, JobStatistics.Quality))


@dataclass(frozen=True)
class Figures:
    """Counts of a population, and the known values of each metric in ascending order."""

    jobs: int
    simulated: int
    batch_jobs: int  # distinct batch jobs of PanDA jobs
    by_quality: dict[str, int]  # number of jobs by data quality of the batch job
    values: dict[str, Numbers]
    owners: Integers  # a number for the owner of each job; empty: not read
    by_state: dict[str, int] = field(default_factory=dict)


def _ascending(values: Numbers) -> Numbers:
    values.sort()
    return values


def _counts(
    jobs: JobQuerySet | WorkloadJobQuerySet, owner: str, **others: Aggregate
) -> dict[str, Any]:
    """Return the counts of jobs, and a number for the owner of each job if `owner` has a name."""
    is_simulated = Q(cluster__in=Cluster.objects.filter(simulated=True))
    owners = Packed(Hash(owner), ">i8") if owner else None
    read = others | ({"owners": owners} if owners else {})
    counts = jobs.order_by().aggregate(
        jobs=Count("pk"), simulated=Count("pk", filter=is_simulated), **read
    )
    numbers = owners.unpack(counts["owners"]) if owners else np.zeros(0, dtype=np.int64)
    return counts | {"owners": numbers}


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
    """Return the figures of batch jobs, with their owners if wanted."""
    statistics = JobStatistics.objects.all()
    if jobs.query.has_filters():  # without filters a join is unnecessary
        statistics = statistics.filter(job__in=jobs)
    by_quality = {quality: Count("pk", filter=Q(quality=quality)) for quality in _QUALITIES}
    values, results = _metric_values(statistics, metrics, **by_quality)
    # Counted afterwards: a job that arrives in between has unknown values.
    counts = _counts(jobs, "owner" if owners else "")
    return Figures(
        **counts,
        batch_jobs=counts["jobs"],
        by_quality={quality: results[quality] for quality in _QUALITIES},
        values=values,
    )


def panda_job_figures(
    jobs: WorkloadJobQuerySet, metrics: Sequence[str], *, owners: bool
) -> Figures:
    """Return the figures of PanDA jobs; each has all figures of its batch job."""
    inside = Packed("inside", ">i8")
    keys = Packed("batch_job", ">i8")
    grouped = jobs.filter(batch_job__isnull=False).order_by().values("batch_job")
    links = grouped.annotate(inside=Count("pk")).aggregate(keys=keys, weights=inside)
    by_job = np.argsort(batch_jobs := keys.unpack(links["keys"]))
    batch_jobs, weights = batch_jobs[by_job], inside.unpack(links["weights"])[by_job]
    shared = _shared_figures(batch_jobs, [name for name in metrics if name not in FIGURES])

    def repeated(holders: Numbers) -> npt.NDArray[np.int64]:
        return weights[batch_jobs.searchsorted(holders)].astype(np.int64)

    own = {name: Packed(FIGURES[name], ">f8") for name in metrics if name in FIGURES}
    states = jobs.order_by().values_list("state").annotate(count=Count("pk"))
    by_state = dict(states.order_by("-count", "state"))
    counts = _counts(jobs, "user" if owners else "", **own)
    values = {name: _ascending(packed.unpack(counts.pop(name))) for name, packed in own.items()}
    for name, (holders, shared_values) in shared.values.items():
        ascending = np.argsort(shared_values)
        values[name] = shared_values[ascending].repeat(repeated(holders[ascending]))
    return Figures(
        **counts,
        batch_jobs=batch_jobs.size,
        by_quality={
            quality: int(repeated(holders).sum()) for quality, holders in shared.by_quality.items()
        },
        values={name: values[name] for name in metrics},
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
