"""I/O of the PanDA jobs of a task or of a PanDA queue: statistics, histograms, trend, flags."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db.models import Count
from django.urls import reverse
from django.utils import timezone

from ioportal.findings.models import Flag
from ioportal.jobs import trends
from ioportal.jobs.analysis import trends as buckets_of
from ioportal.jobs.analysis.histograms import Scale
from ioportal.jobs.models import Job
from ioportal.jobs.populations.selections import BATCH_JOBS, PANDA_JOBS, Selection, compare
from ioportal.jobs.visibility import visibility_key
from ioportal.metrics import ANY_BY_NAME, BY_NAME, PANDA_METRICS
from ioportal.rules import BY_CODE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.contrib.auth.models import User

    from ioportal.jobs.models import WorkloadJobQuerySet
    from ioportal.jobs.populations.selections import Comparison

# Of batch jobs, each counted once.
_OF_BATCH_JOBS = (
    *("read_bytes", "write_bytes", "metadata_operations", "metadata_operations_per_node"),
    *("opens", "closes", "peak_metadata_rate"),
)
_OWN = [metric.name for metric in PANDA_METRICS]
_MOMENT = timedelta(microseconds=1)  # after the end of the last job: buckets are half-open
_MEDIANS = tuple(BY_NAME[name] for name in ("metadata_operations", "opens", "read_bytes"))


def aggregates(user: User, jobs: WorkloadJobQuerySet, filters: str) -> dict[str, Any] | None:
    """Return the aggregates of PanDA jobs that a user may see; None: there are none.

    Args:
        user: the reader.
        jobs: the jobs that the user may see and `filters` select.
        filters: the query of the page of the jobs.
    """
    version = visibility_key(user)
    panda = compare([Selection(PANDA_JOBS, filters, version, jobs)], _OWN)
    (summary,) = panda.summaries
    if not summary.jobs:
        return None
    holders = Job.objects.visible_to(user).filter(pk__in=jobs.order_by().values("batch_job"))
    batch = compare([Selection(BATCH_JOBS, f"inside&{filters}", version, holders)], _OF_BATCH_JOBS)
    return {
        "npandajobs": summary.jobs,
        "nbatchjobs": summary.batch_jobs,
        "simulated": summary.simulated,
        "jobstatus": summary.by_state,
        "quality": batch.summaries[0].by_quality,
        "statistics": {**_statistics(panda, "PanDA job"), **_statistics(batch, "batch job")},
        "histograms": {**_histograms(panda), **_histograms(batch)},
        "trend": _trend(jobs, holders),
        "flags": list(_flags(user, holders)),
        "url": f"{settings.PORTAL_URL}{reverse('populations')}?unit=panda&{filters}",
    }


def _statistics(population: Comparison, of: str) -> dict[str, Any]:
    return {
        name: {
            "title": ANY_BY_NAME[name].title,
            "unit": str(ANY_BY_NAME[name].unit),
            "of": of,
            **vars(spread),
        }
        for name, spread in population.summaries[0].spreads.items()
    }


def _histograms(population: Comparison) -> dict[str, Any]:
    return {
        name: {
            "unit": str(ANY_BY_NAME[name].unit),
            "bins": bars.bins,
            "counts": bars.counts[0],
        }
        for (name, scale), bars in population.histograms.items()
        if scale is Scale.LOG
    }


def _trend(jobs: WorkloadJobQuerySet, holders: Any) -> dict[str, Any]:
    """Return PanDA jobs by outcome and end, and medians of batch jobs by start."""
    extent = trends.extent(jobs, trends.PANDA_RECORDS)
    if extent is None:
        return {"step": None, "rows": []}
    start, end = extent[0], extent[1] + _MOMENT
    step = buckets_of.step_for(start, end)
    buckets = buckets_of.buckets(start, end, step, timezone.get_current_timezone())
    rows: dict[int, dict[str, Any]] = defaultdict(dict)
    for bucket, counts in trends.outcomes(jobs, trends.PANDA_RECORDS, buckets):
        rows[bucket] |= counts
    for bucket, medians in trends.medians(holders, trends.BATCH_RECORDS, _MEDIANS, buckets, 1):
        rows[bucket] |= {f"batch_job_{name}_median": value for name, value in medians.items()}
    names = [
        *trends.PANDA_RECORDS.outcomes,
        *(f"batch_job_{metric.name}_median" for metric in _MEDIANS),
    ]
    return {
        "step": step.name.lower(),
        "rows": [
            {"start": start, "end": end, **dict.fromkeys(names), **rows[number]}
            for number, (start, end) in enumerate(buckets.bounds)
        ],
    }


def _flags(user: User, holders: Any) -> Iterator[dict[str, Any]]:
    """Yield the rules that flagged batch jobs, most batch jobs first."""
    flags = Flag.objects.visible_to(user).counted().filter(job__in=holders).order_by()
    counted = flags.values_list("rule").annotate(jobs=Count("job", distinct=True))
    for rule, count in counted.order_by("-jobs", "rule"):
        title = BY_CODE[rule].title if rule in BY_CODE else rule
        yield {"rule": rule, "title": title, "nbatchjobs": count}
