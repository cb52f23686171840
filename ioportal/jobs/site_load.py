"""The use of a whole site in a period: an aggregate over the jobs of all users."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

from django.db.models import Count, Sum, Value
from django.db.models.lookups import GreaterThan

from ioportal.jobs import trends
from ioportal.jobs.analysis.anonymity import coarse, hides_owners
from ioportal.jobs.analysis.trends import Buckets, Step
from ioportal.jobs.cache import cached, statistics_version
from ioportal.jobs.expressions import KNOWN_UNTIL, node_hours
from ioportal.jobs.models import Job
from ioportal.jobs.populations.selections import day_end, day_start
from ioportal.jobs.trends import BATCH_RECORDS
from ioportal.jobs.visibility import visibility_key

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import User


def nodes_in_use(user: User, start: datetime, end: datetime) -> float | None:
    """Return the mean number of nodes in use on the days of [start, end), in two digits.

    None: jobs that `user` may not see could be revealed (`hides_owners`), or there are no jobs.
    Whole days and rounded figures hide single jobs of other users.
    """
    days = (day_start(start), day_end(end))
    return cached(
        "site-load",
        (days, visibility_key(user)),
        lambda: _nodes_in_use(user, Buckets(Step.YEAR, days, UTC)),
        statistics_version,
    )


def _nodes_in_use(user: User, period: Buckets) -> float | None:
    if not user.is_staff and not _hides_owners(user, period):
        return None
    [(_, use)] = trends.use(Job.objects.all(), BATCH_RECORDS, period)
    return coarse(use["nodes_mean"] or 0.0) or None


def _hides_owners(user: User, period: Buckets) -> bool:
    """Return whether no owner of jobs that `user` may not see has most of their node-hours."""
    by_owner = (
        Job.objects.hidden_from(user)
        .filter(GreaterThan(KNOWN_UNTIL, Value(period.start)), started_at__lt=period.end)
        .order_by()
        .values_list("owner")
        .annotate(jobs=Count("pk"), used=Sum(node_hours(period.start, period.end)))
        .filter(used__gt=0)
    )
    _, jobs, used = zip(*by_owner, strict=True) if by_owner else ((), (), ())
    return bool(hides_owners(sum(jobs), len(jobs), max(used, default=0), sum(used)))
