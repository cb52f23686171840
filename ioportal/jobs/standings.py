"""A job's place among similar jobs: anonymous aggregates, never a single job of another user."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ioportal.jobs import similar_jobs
from ioportal.jobs.analysis import usual
from ioportal.jobs.analysis.histograms import Histogram, Scale, histogram
from ioportal.jobs.analysis.populations import coarse, coarsened, is_anonymous, rounded_count
from ioportal.jobs.population_figures import metric_values
from ioportal.jobs.population_values import Covariate, batch_job_values
from ioportal.metrics import BY_NAME, Metric

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    from django.contrib.auth.models import AnonymousUser, User

    from ioportal.jobs.analysis.comparison.arms import Floats
    from ioportal.jobs.analysis.usual import Usual
    from ioportal.jobs.models import Job, JobStatistics
    from ioportal.jobs.population_values import JobValues

    Flags = npt.NDArray[np.bool_]

_RANK_STEP = 0.05  # of ranks among other users' jobs
METRICS = tuple(
    BY_NAME[name]
    for name in (
        "metadata_operations",
        "metadata_operations_per_node",
        "peak_metadata_rate",
        "startup_share",
        "open_close_ratio",
        "largest_target_share",
        "read_bytes",
        "write_bytes",
        "mean_read_bytes",
        "mean_write_bytes",
        "mean_service_us",
        "cpu_efficiency",
    )
)


@dataclass(frozen=True)
class Standing:
    """A job's place among similar jobs by one metric.

    Without rank and usual values, these are too few, or could reveal jobs that the reader may not
    see. With such jobs, their number is rounded.
    """

    metric: Metric
    value: float
    similar_jobs: int
    rank: float | None  # share of similar jobs below: 0 to 1
    usual: Usual | None


def standings(job: Job, statistics: JobStatistics, reader: User | AnonymousUser) -> list[Standing]:
    """Return a job's place by each of its known metrics, as far as `reader` may see it."""
    known = [metric for metric in METRICS if getattr(statistics, metric.name) is not None]
    if not known:
        return []
    similar = similar_jobs.for_job(job)
    jobs = batch_job_values(similar, [metric.name for metric in known], Covariate.NONE)
    is_hidden = np.zeros(jobs.batch_jobs.size, bool)
    if not reader.is_staff:
        hidden = batch_job_values(similar.hidden_from(reader), [], Covariate.NONE)
        is_hidden = np.isin(jobs.batch_jobs, hidden.batch_jobs)
    return [
        _standing(metric, getattr(statistics, metric.name), jobs, is_hidden) for metric in known
    ]


def metric_histogram(job: Job, metric: str, included: Sequence[float]) -> Histogram:
    """Return the histogram of a metric over similar jobs; its bins include some more values.

    Single jobs can be read from it: for users who may see all jobs.
    """
    figures = metric_values(similar_jobs.for_job(job), [metric])[metric]
    samples = [figures.astype(np.int64), np.array(sorted(included)).astype(np.int64)]
    counted = histogram(samples, Scale.LOG)
    return replace(counted, counts=counted.counts[:1])


def _standing(metric: Metric, value: float, jobs: JobValues, is_hidden: Flags) -> Standing:
    values = jobs.values[metric.name]
    is_known = ~np.isnan(values)
    others = is_hidden & is_known
    number = int(np.count_nonzero(is_known))
    if not others.any():
        return _ranked(metric, value, values[is_known], number)
    if not is_anonymous(jobs.batch_jobs[others], jobs.users[others]):
        return Standing(metric, value, rounded_count(number), None, None)
    coarse_values = coarsened(values[is_known]).astype(float)
    standing = _ranked(metric, coarse(value), coarse_values, rounded_count(number))
    quantiles = standing.usual and standing.usual.rounded
    return replace(standing, value=value, rank=_rounded(standing.rank), usual=quantiles)


def _rounded(rank: float | None) -> float | None:
    """Return a rank from which the number of jobs cannot be computed."""
    return None if rank is None else round(round(rank / _RANK_STEP) * _RANK_STEP, 2)


def _ranked(metric: Metric, value: float, known: Floats, number: int) -> Standing:
    figures = np.sort(known)
    quantiles = usual.usual(figures)
    rank = None if quantiles is None else usual.rank(figures, value)
    return Standing(metric, value, number, rank, quantiles)
