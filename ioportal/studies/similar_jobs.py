"""Where a job stands among jobs of its size: anonymous aggregates, never a job of somebody else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
from django.db.models import Q

from ioportal.analysis.histograms import Histogram, Scale, histogram
from ioportal.analysis.metrics import BY_NAME, Metric
from ioportal.analysis.populations import FEWEST, coarse, coarsened
from ioportal.jobs.models import Job, JobStatistics
from ioportal.studies.populations import known_figures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioportal.analysis.populations import Numbers
    from ioportal.jobs.models import JobQuerySet

SIZE_FACTOR = 2
WITHIN = timedelta(days=30)
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
_QUANTILES = (0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True)
class Standing:
    """A job's place among its peers by one metric; None where they are fewer than `FEWEST`."""

    metric: Metric
    value: float
    peers: int
    rank: float | None  # share of the peers below, ties by half: 0 to 1
    quartiles: tuple[float, float, float] | None
    p90: float | None


def jobs_like(job: Job) -> JobQuerySet:
    """Return a job's peers.

    They ran on its cluster, on half to twice its nodes, and started within 30 days of it; figures
    of poor quality are no company.
    """
    if job.started_at is None:
        return Job.objects.none()
    return Job.objects.filter(
        cluster=job.cluster_id,
        node_count__gte=job.node_count / SIZE_FACTOR,
        node_count__lte=job.node_count * SIZE_FACTOR,
        started_at__gte=job.started_at - WITHIN,
        started_at__lte=job.started_at + WITHIN,
    ).exclude(Q(pk=job.pk) | Q(quality=JobStatistics.Quality.POOR))


def standings(job: Job, statistics: JobStatistics) -> list[Standing]:
    """Return where a job stands by each metric that is known of it, among coarse figures."""
    known = [metric for metric in METRICS if getattr(statistics, metric.name) is not None]
    if not known:
        return []
    names = [metric.name for metric in known]
    peers = known_figures(jobs_like(job), names)
    return [
        _standing(metric, getattr(statistics, metric.name), coarsened(peers[metric.name]))
        for metric in known
    ]


def spread_out(job: Job, metric: str, besides: Sequence[float]) -> Histogram:
    """Return how many of a job's peers are where, by a metric; its bins hold some values besides.

    What single peers did can be read from it: it is for those who may see all jobs.
    """
    known = known_figures(jobs_like(job), [metric])[metric]
    whole = [known.astype(np.int64), np.array(sorted(besides)).astype(np.int64)]
    counted = histogram(whole, Scale.LOG)
    return replace(counted, counts=counted.counts[:1])


def _standing(metric: Metric, value: float, peers: Numbers) -> Standing:
    """Rank a value among those of its peers, which are ascending and coarse."""
    if peers.size < FEWEST:
        return Standing(metric, value, peers.size, rank=None, quartiles=None, p90=None)
    below, not_above = (peers.searchsorted(coarse(value), side) for side in ("left", "right"))
    low, middle, high, p90 = (coarse(found) for found in np.quantile(peers, _QUANTILES))
    rank = float(below + not_above) / 2 / peers.size
    return Standing(metric, value, peers.size, rank, (low, middle, high), p90)
