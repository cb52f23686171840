"""Jobs of two periods with known effects."""

from datetime import timedelta

import numpy as np

from ioportal.jobs.models import Job, JobStatistics
from tests.web.conftest import NOON

DAYS, JOBS_PER_DAY = 8, 6
CHANGED = NOON + timedelta(days=DAYS)
BEFORE = np.arange(DAYS * JOBS_PER_DAY) % 11 * 40 + 4_000  # opens of alice's jobs
AFTER = BEFORE // 4


def add(cluster, owner="alice", opens=(BEFORE, AFTER)):
    """Add jobs of a user: eight days of six jobs before noon of 13 July, and as many after it."""
    jobs = [
        Job(
            cluster=cluster,
            batch_id=f"{owner}{side}.{number}",
            submitted_at=start,
            started_at=start,
            ended_at=start + timedelta(minutes=50),
            name="relax",
            owner=owner,
            project="PHY12" if owner == "alice" else "BIO3",
            queue="batch",
            state=Job.State.COMPLETED,
            node_count=2 + number % 3,
            precedence="",
            quality="good",
        )
        for side in range(2)
        for number in range(DAYS * JOBS_PER_DAY)
        for start in [_start(side * DAYS + number // JOBS_PER_DAY, 1 + number % JOBS_PER_DAY)]
    ]
    Job.objects.bulk_create(jobs)
    JobStatistics.objects.bulk_create(
        JobStatistics(
            job=job,
            computed_at=NOON,
            quality="good",
            covered_share=1,
            node_count=job.node_count,
            duration_s=3_000.0,
            opens=int(value),
            metadata_operations=2 * int(value),
            count_open=int(value),
            count_getattr=int(value),
        )
        for job, value in zip(jobs, np.concatenate(opens), strict=True)
    )
    return jobs


def _start(day, hour):
    return NOON + timedelta(days=day, hours=hour)
