"""People who look at pages, and jobs for them to see."""

from datetime import timedelta
from itertools import count

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import call_command

from ioportal.jobs.models import Job, JobStatistics, WorkloadJob
from ioportal.site.models import Cluster
from tests import contents
from tests.logs import DAY, at
from tests.web import stories

NOON = at("12:00")


@pytest.fixture(autouse=True)
def _static_files_as_they_are(settings, tmp_path):
    """Tests serve static files under their own names, without collecting them first."""
    settings.STATIC_ROOT = str(tmp_path)
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
                "precedence": "",
                **facts,
            }
        )
        if figures is not None:
            statistics = JobStatistics.objects.create(
                job=job, computed_at=NOON, **{"quality": "good", "covered_share": 1, **figures}
            )
            Job.objects.filter(pk=job.pk).update(quality=statistics.quality)
        return job

    return make


@pytest.fixture
def put_inside():
    """Put PanDA jobs of these numbers inside a batch job."""

    def put(job, *numbers, **facts):
        for number in numbers:
            WorkloadJob.objects.create(
                cluster=job.cluster,
                batch_job=job,
                panda_id=number,
                **{
                    "task_id": 10_995_522,
                    "reported_batch_id": job.batch_id,
                    "batch_id": job.batch_id,
                    "site": "ORNL_Titan_MCORE",
                    "user": "Pilot One",
                    "state": "finished",
                    "created_at": at("11:55"),
                    "started_at": at("12:05"),
                    "ended_at": at("12:15"),
                    "core_count": 16,
                    "cpu_s": 4_800,
                    **facts,
                },
            ).jobs.add(job)

    return put


@pytest.fixture(scope="module")
def heavy_job(django_db_setup, django_db_blocker, tmp_path_factory):
    """The job of `stories.heavy_job`, ingested once for all tests of a module."""
    with django_db_blocker.unblock():
        yield stories.heavy_job(tmp_path_factory.mktemp("logs"))
        call_command("flush", interactive=False, verbosity=0)
        contents.empty_hypertables()
