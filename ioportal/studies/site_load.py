"""The use of a whole site in a period: an aggregate over the jobs of all users."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

from ioportal.analysis.populations import coarse, is_anonymous
from ioportal.analysis.trends import Buckets, Step
from ioportal.jobs.models import Job
from ioportal.studies import trends
from ioportal.studies.cache import cached, statistics_version, visibility_key
from ioportal.studies.population_values import Covariate, batch_job_values
from ioportal.studies.populations import day_end, day_start
from ioportal.studies.trends import BATCH_RECORDS

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import User


def nodes_in_use(user: User, start: datetime, end: datetime) -> float | None:
    """Return the mean number of nodes in use on the days of [start, end), in two digits.

    None: jobs that `user` may not see could be revealed (`is_anonymous`), or there are no jobs.
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
    in_period = {"started_at__gte": period.start, "started_at__lt": period.end}
    if not user.is_staff:
        hidden_jobs = Job.objects.hidden_from(user).filter(**in_period)
        hidden = batch_job_values(hidden_jobs, [], Covariate.NONE)
        if not is_anonymous(hidden.batch_jobs, hidden.users):
            return None
    [(_, use)] = trends.use(Job.objects.all(), BATCH_RECORDS, period)
    return coarse(use["nodes_mean"] or 0.0) or None
