"""Rows of mitigations for the tests of pages."""

from datetime import timedelta

import numpy as np
from django.core.cache import cache

from ioportal.changes.models import Mitigation
from ioportal.jobs.models import Job, JobStatistics
from tests.logs import at
from tests.web.conftest import NOON

DAY = timedelta(days=1)
HOSTILE = "</script><b>x</b>\u202e"


def log(**facts):
    """Log a code fix of a quarter past noon."""
    return Mitigation.objects.create(
        **{"title": "Fix", "kind": "code", "started_at": NOON + DAY / 96, **facts}
    )


def change_run_time(cluster, halfway=0):
    """Create forty days with five jobs of alice, whose run time falls to a quarter on 1 July.

    It falls to a half only for the first days, if there are such, `halfway`.
    """
    rng = np.random.default_rng(1)
    jobs, statistics = [], []
    for number in range(200):
        start = at("00:30") + DAY * (number // 5 - 24) + timedelta(hours=number % 5)
        level = 4_000 if number < 100 else 2_000 if number < 100 + 5 * halfway else 1_000
        seconds = level * rng.lognormal(0, 0.1)
        jobs.append(
            Job(
                cluster=cluster, batch_id=f"{number}", submitted_at=start, started_at=start,
                ended_at=start + timedelta(seconds=seconds), owner="alice", name="relax",
                precedence="", quality="good",
            )
        )  # fmt: skip
        statistics.append(
            JobStatistics(
                job=jobs[-1], computed_at=NOON, quality="good", covered_share=1, duration_s=seconds
            )
        )
    Job.objects.bulk_create(jobs)
    JobStatistics.objects.bulk_create(statistics)
    cache.clear()
