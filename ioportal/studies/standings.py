"""A job's place among similar jobs: anonymous aggregates, never a single job of another user."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ioportal.analysis import usual
from ioportal.analysis.histograms import Histogram, Scale, histogram
from ioportal.analysis.metrics import BY_NAME, Metric
from ioportal.analysis.populations import coarsened
from ioportal.jobs import similar_jobs
from ioportal.studies.population_figures import metric_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioportal.analysis.populations import Numbers
    from ioportal.analysis.usual import Usual
    from ioportal.jobs.models import Job, JobStatistics

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
    """A job's place among similar jobs by one metric; None if these are fewer than `MIN_GROUP`."""

    metric: Metric
    value: float
    similar_jobs: int
    rank: float | None  # share of similar jobs below, ties by half: 0 to 1
    usual: Usual | None


def standings(job: Job, statistics: JobStatistics) -> list[Standing]:
    """Return a job's place by each of its known metrics."""
    known = [metric for metric in METRICS if getattr(statistics, metric.name) is not None]
    if not known:
        return []
    figures = metric_values(similar_jobs.for_job(job), [metric.name for metric in known])
    return [
        _standing(metric, getattr(statistics, metric.name), coarsened(figures[metric.name]))
        for metric in known
    ]


def metric_histogram(job: Job, metric: str, included: Sequence[float]) -> Histogram:
    """Return the histogram of a metric over similar jobs; its bins include some more values.

    Single jobs can be read from it: for users who may see all jobs.
    """
    figures = metric_values(similar_jobs.for_job(job), [metric])[metric]
    samples = [figures.astype(np.int64), np.array(sorted(included)).astype(np.int64)]
    counted = histogram(samples, Scale.LOG)
    return replace(counted, counts=counted.counts[:1])


def _standing(metric: Metric, value: float, figures: Numbers) -> Standing:
    quantiles = usual.usual(figures)
    rank = None if quantiles is None else usual.rank(figures, value)
    return Standing(metric, value, figures.size, rank, quantiles)
