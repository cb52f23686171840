"""Jobs and their counters, for tests of flags."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User

from ioportal.findings import evaluation
from ioportal.findings.models import JobEvidence
from ioportal.jobs.models import DirtyEvidence, Job, JobStatistics
from ioportal.site.models import Cluster, Server
from ioportal.telemetry.models import ImpactWindow, Principal
from ioportal.telemetry.stage_runs import drain
from tests.logs import at, job_stats, sacct

MDT = "lake-MDT0000"


@pytest.fixture
def jobs(logs, ingest):
    """Ingest jobs of anvil."""
    return lambda *runs: ingest("sacct", logs(f"s{hash(runs)}", sacct(*runs)), cluster="anvil")


@pytest.fixture
def read(logs, ingest):
    """Ingest the MDT's count of stats by job 77 at a time of day; None: no record."""

    def run(clock, stats):
        entries = {"login1.bash": {"open": 1}}
        if stats is not None:
            entries["77"] = {"getattr": stats}
        text = job_stats(MDT, entries, snapshot=clock)
        return ingest("job_stats", logs(f"read-{clock}", text), at=at(clock).isoformat())

    return run


@pytest.fixture
def harm(db):
    """Store a harm of jobs that no rule about impact flags: others waited, but not much longer."""

    def run(batch_id, clock="12:05"):
        ImpactWindow.objects.create(
            start=at(clock),
            server_id=Server.objects.get(name="mds2").pk,  # whose impact is not computed
            kind=Principal.JOB,
            principal_id=Job.objects.get(batch_id=batch_id).pk,
            impact_us=600_000_000,
            work_us=1,
            all_work_us=2,
            others_us=3,
            others_usual_us=2,
        )

    return run


@pytest.fixture
def sam(db):
    """A member of staff."""
    return User.objects.create_user("sam", is_staff=True)


@pytest.fixture
def flag_job(db):
    """Create a harmful job that ended some time after 13:00, and evaluate it."""

    def run(batch_id, after=timedelta(0), *, operations=3e6, quality="good", **facts):
        job = Job.objects.create(
            cluster=Cluster.objects.get(name="anvil"),
            batch_id=batch_id,
            node_count=2,
            submitted_at=at("12:00") + after,
            started_at=at("12:00") + after,
            ended_at=at("13:00") + after,
            **{"owner": "alice", "name": "relax", **facts},
        )
        JobStatistics.objects.create(
            job=job,
            computed_at=at("14:00"),
            quality=quality,
            duration_s=3_600,
            metadata_operations=operations,
            metadata_operations_per_node=operations / 2,
        )
        JobEvidence.objects.create(
            job=job,
            peak_operations=operations,
            impact_s=600,
            impact_share=0.5,
            seen_until=job.ended_at,
        )
        DirtyEvidence.objects.mark([job.pk])
        drain(evaluation.evaluate_pending)
        return job

    return run
