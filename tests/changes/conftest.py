"""Jobs of several users over some weeks, created together."""

from datetime import timedelta

import pytest

from ioportal.jobs.models import Job, JobStatistics
from tests.web import rows
from tests.web.conftest import NOON, alice, charlie, cluster, new_job, put_inside, sam

__all__ = ["alice", "charlie", "cluster", "new_job", "put_inside", "sam"]


@pytest.fixture
def new_jobs(cluster):
    """Create jobs with one hour of run time: (day, figures, facts) each."""

    def make(jobs):
        created = Job.objects.bulk_create(
            rows.unsaved_job(
                NOON + timedelta(days=day, seconds=number),
                **{
                    "cluster": cluster,
                    "batch_id": f"{facts.get('owner', 'alice')}{number}",
                    "name": "relax_1",
                    "quality": "good",
                    **facts,
                },
            )
            for number, (day, _, facts) in enumerate(jobs)
        )
        JobStatistics.objects.bulk_create(
            JobStatistics(job=job, computed_at=NOON, quality="good", covered_share=1, **figures)
            for job, (_, figures, _) in zip(created, jobs, strict=True)
        )
        return created

    return make
