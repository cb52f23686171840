"""Where a job stands among jobs of its size: anonymous aggregates, never a job of somebody else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
from django.db.models import Count, Q

from ioportal.analysis.histograms import Histogram, Scale, histogram
from ioportal.analysis.metrics import BY_NAME, Metric
from ioportal.analysis.populations import FEWEST
from ioportal.jobs.models import Job, JobStatistics
from ioportal.jobs.quantiles import Quantiles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import Aggregate, QuerySet

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


def of(job: Job) -> QuerySet[JobStatistics]:
    """Return the statistics of a job's peers.

    They ran on its cluster, on half to twice its nodes, and started within 30 days of it; figures
    of poor quality are no company.
    """
    if job.started_at is None:
        return JobStatistics.objects.none()
    return JobStatistics.objects.filter(
        job__cluster=job.cluster_id,
        job__node_count__gte=job.node_count / SIZE_FACTOR,
        job__node_count__lte=job.node_count * SIZE_FACTOR,
        job__started_at__gte=job.started_at - WITHIN,
        job__started_at__lte=job.started_at + WITHIN,
    ).exclude(Q(job=job) | Q(quality=JobStatistics.Quality.POOR))


def standings(job: Job, statistics: JobStatistics) -> list[Standing]:
    """Return where a job stands by each metric that is known of it, in one query."""
    known = [metric for metric in METRICS if getattr(statistics, metric.name) is not None]
    if not known:
        return []
    figures: dict[str, Aggregate] = {}
    for metric in known:
        name, value = metric.name, getattr(statistics, metric.name)
        figures[f"{name}_n"] = Count(name)
        figures[f"{name}_below"] = Count("pk", filter=Q(**{f"{name}__lt": value}))
        figures[f"{name}_equal"] = Count("pk", filter=Q(**{name: value}))
        figures[f"{name}_quantiles"] = Quantiles(name, _QUANTILES)
    found = of(job).aggregate(**figures)
    return [
        _standing(
            metric,
            getattr(statistics, metric.name),
            *(found[f"{metric.name}_{figure}"] for figure in ("n", "below", "equal", "quantiles")),
        )
        for metric in known
    ]


def spread_out(job: Job, metric: str, besides: Sequence[float]) -> Histogram:
    """Return how many of a job's peers are where, by a metric; its bins hold some values besides.

    What single peers did can be read from it: it is for those who may see all jobs.
    """
    known = of(job).exclude(**{metric: None}).order_by(metric).values_list(metric, flat=True)
    whole = [
        np.fromiter(values, np.float64).astype(np.int64) for values in (known, sorted(besides))
    ]
    counted = histogram(whole, Scale.LOG)
    return replace(counted, counts=counted.counts[:1])


def _standing(  # noqa: PLR0917  (in the order of the figures)
    metric: Metric, value: float, peers: int, below: int, equal: int, quantiles: list[float] | None
) -> Standing:
    if peers < FEWEST or quantiles is None:
        return Standing(metric, value, peers, rank=None, quartiles=None, p90=None)
    low, middle, high, p90 = quantiles
    return Standing(metric, value, peers, (below + equal / 2) / peers, (low, middle, high), p90)
