"""Jobs of several users over some weeks, created together."""

from datetime import timedelta

import pytest

from ioportal.jobs.models import Job, JobStatistics
from tests.web.conftest import NOON, alice, charlie, cluster, new_job, put_inside, sam

__all__ = ["alice", "charlie", "cluster", "new_job", "put_inside", "sam"]


@pytest.fixture
def new_jobs(cluster):
    """Create jobs with one hour of run time: (day, figures, facts) each."""

    def make(jobs):
        rows = []
        for number, (day, _, facts) in enumerate(jobs):
            start = NOON + timedelta(days=day, seconds=number)
            rows.append(
                Job(
                    **{
                        "cluster": cluster,
                        "batch_id": f"{facts.get('owner', 'alice')}{number}",
                        "submitted_at": start,
                        "started_at": start,
                        "ended_at": start + timedelta(hours=1),
                        "name": "relax_1",
                        "owner": "alice",
                        "project": "PHY12",
                        "queue": "batch",
                        "state": Job.State.COMPLETED,
                        "node_count": 2,
                        "precedence": "",
                        "quality": "good",
                        **facts,
                    }
                )
            )
        created = Job.objects.bulk_create(rows)
        JobStatistics.objects.bulk_create(
            JobStatistics(job=job, computed_at=NOON, quality="good", covered_share=1, **figures)
            for job, (_, figures, _) in zip(created, jobs, strict=True)
        )
        return created

    return make
