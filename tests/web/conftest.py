"""People who look at pages, and jobs for them to see."""

from datetime import timedelta
from itertools import count

import pytest
from django.contrib.auth.models import Group, User

from ioportal.ingest import charging
from ioportal.jobs import statistics
from ioportal.jobs.models import Cluster, Job, JobStatistics
from ioportal.stages import drain
from tests.logs import DAY, Run, at, job_stats, rpc, sacct

NOON = at("12:00")


@pytest.fixture(autouse=True)
def _static_files_as_they_are(settings):
    """Tests serve static files under their own names, without collecting them first."""
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    }


def _person(name, **facts):
    return User.objects.create_user(name, password=f"password of {name}", **facts)


@pytest.fixture
def alice(db):
    """She owns the jobs."""
    return _person("alice")


@pytest.fixture
def bob(db):
    """He shares alice's project."""
    bob = _person("bob")
    bob.groups.add(Group.objects.create(name="PHY12"))
    return bob


@pytest.fixture
def charlie(db):
    """He is a stranger."""
    return _person("charlie")


@pytest.fixture
def sam(db):
    """She is of the staff."""
    return _person("sam", is_staff=True, is_superuser=True)


@pytest.fixture
def as_alice(client, alice):
    """A browser that alice is logged in with."""
    client.force_login(alice)
    return client


@pytest.fixture
def as_staff(client, sam):
    """A browser that staff is logged in with."""
    client.force_login(sam)
    return client


@pytest.fixture
def cluster(db):
    """A compute system."""
    return Cluster.objects.create(name="anvil", time_zone="UTC", batch_system="slurm")


@pytest.fixture
def new_job(cluster):
    """Make a job; with `figures`, its statistics too."""
    ids = count(3_567_000)

    def make(figures=None, **facts):
        start = facts.pop("started_at", NOON)
        ended = facts.pop("ended_at", start and start + timedelta(hours=1))
        job = Job.objects.create(
            **{
                "cluster": cluster,
                "batch_id": str(next(ids)),
                "submitted_at": start or DAY,
                "started_at": start,
                "ended_at": ended,
                "name": "relax",
                "owner": "alice",
                "project": "PHY12",
                "queue": "batch",
                "state": Job.State.COMPLETED,
                "node_count": 2,
                "standing": "",
                **facts,
            }
        )
        if figures is not None:
            JobStatistics.objects.create(
                job=job, computed_at=NOON, **{"quality": "good", "covered_share": 1, **figures}
            )
        return job

    return make


@pytest.fixture
def compute(db):
    """Charge and compute what was ingested."""

    def run():
        drain(charging.charge_pending)
        drain(statistics.refresh_statistics)

    return run


@pytest.fixture
def read_at(logs, ingest):
    """Ingest a read of job_stats: entries by target, as `tests.logs.job_stats` takes them."""

    def read(clock, targets, **options):
        texts = [
            job_stats(target, entries, snapshot=clock, **options)
            for target, entries in targets.items()
        ]
        path = logs(f"read-{clock.replace(':', '')}.txt", *texts)
        return ingest("job_stats", path, "--at", at(clock).isoformat())

    return read


@pytest.fixture
def heavy_job(site, logs, ingest, read_at, compute):
    """Job 3567126 of alice: n1 and n2 from 12:00 to 13:00, read every ten minutes, traced for ten
    seconds. Nobody read the MDT between 12:20 and 12:50."""
    runs = sacct(Run("3567126", nodes="n[1-2]", node_count=2))
    ingest("sacct", logs("jobs.txt", runs), cluster="anvil")
    for clock, opens in {
        "11:50": None,
        "12:00": None,
        "12:10": 60_000,
        "12:20": 66_000,
        "12:50": 84_000,
        "13:00": 90_000,
        "13:10": 90_000,
    }.items():
        entry = {"open": opens, "close": opens // 3, "getattr": 100} if opens else {"open": 1}
        read_at(clock, {"lake-MDT0000": {"3567126" if opens else "login1.bash": entry}})
    trace = [
        rpc(at("12:05") + timedelta(milliseconds=10 * number), f"{number % 2 + 1}@gni")
        for number in range(1000)
    ]
    trace.append(rpc(at("12:05:10"), "1@gni", 35, us=(20, 90)))
    ingest("rpctrace", logs("mds1.log", *trace), server="mds1")
    compute()
    return Job.objects.get(batch_id="3567126")
