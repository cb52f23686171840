"""The use of a whole site in a period: an aggregate over the jobs of all users."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

from ioportal.analysis.populations import MIN_GROUP, coarse
from ioportal.analysis.trends import Buckets, Step
from ioportal.jobs.models import Job
from ioportal.studies import trends
from ioportal.studies.cache import cached, statistics_version
from ioportal.studies.trends import BATCH_RECORDS

if TYPE_CHECKING:
    from datetime import datetime


def nodes_in_use(start: datetime, end: datetime) -> float | None:
    """Return the mean number of nodes in use in [start, end), in two digits.

    None: fewer than ten jobs, which would be other users' single jobs.
    """
    return cached(
        "site-load",
        (start, end),
        lambda: _nodes_in_use(start, end),
        statistics_version,
    )


def _nodes_in_use(start: datetime, end: datetime) -> float | None:
    jobs = Job.objects.filter(started_at__gte=start, started_at__lt=end)
    if jobs.count() < MIN_GROUP:
        return None
    buckets = Buckets(Step.YEAR, (start, end), UTC)
    [(_, use)] = trends.use(Job.objects.all(), BATCH_RECORDS, buckets)
    return coarse(use["nodes_mean"] or 0.0)
