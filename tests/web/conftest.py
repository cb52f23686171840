"""Users, and jobs that they see."""

from functools import cache
from itertools import count
from string import ascii_lowercase

import pytest
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group, User
from django.test import Client

from ioportal.jobs.models import Job, JobStatistics
from ioportal.site.models import Cluster, Filesystem, Server
from ioportal.telemetry.models import Coverage
from tests.logs import at
from tests.web import rows, stories

NOON = at("12:00")


@pytest.fixture(autouse=True)
def _static_files_as_they_are(settings, tmp_path):
    """Serve static files without collecting them first."""
    settings.STATIC_ROOT = str(tmp_path)
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    }


@cache
def _hashed_password(name):
    return make_password(f"password of {name}")


def _person(name, **facts):
    facts = {"password": _hashed_password(name), **facts}
    return User.objects.get_or_create(username=name, defaults=facts)[0]


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
    """He shares nothing with alice."""
    return _person("charlie")


@pytest.fixture
def sam(db):
    """She is staff."""
    return _person("sam", is_staff=True, is_superuser=True)


def _client_of(user):
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def as_alice(alice):
    """A client logged in as alice."""
    return _client_of(alice)


@pytest.fixture
def as_bob(bob):
    """A client logged in as bob."""
    return _client_of(bob)


@pytest.fixture
def as_charlie(charlie):
    """A client logged in as charlie."""
    return _client_of(charlie)


@pytest.fixture
def as_staff(sam):
    """A client logged in as staff."""
    return _client_of(sam)


@pytest.fixture
def cluster(db):
    """A compute system."""
    return Cluster.objects.create(name="anvil", time_zone="UTC", batch_system="slurm")


@pytest.fixture
def new_job(cluster):
    """Create a job; with `figures`, also its statistics."""
    ids = count(3_567_000)

    def make(figures=None, **facts):
        start = facts.pop("started_at", NOON)
        job = rows.unsaved_job(start, **{"cluster": cluster, "batch_id": str(next(ids)), **facts})
        job.save()
        if figures is not None:
            statistics = JobStatistics.objects.create(
                job=job, computed_at=NOON, **{"quality": "good", "covered_share": 1, **figures}
            )
            Job.objects.filter(pk=job.pk).update(quality=statistics.quality)
        return job

    return make


@pytest.fixture
def new_flag(new_job):
    """Create a flag of a job, by default of a new one."""
    return lambda job=None, **facts: rows.flag_job(job or new_job(), **facts)


@pytest.fixture
def new_case(new_flag, new_job):
    """Create a case with one flag, by default of another application than the cases before."""
    names = iter(ascii_lowercase)
    of_flag = {"rule", "severity", "since", "until", "filesystem"}

    def make(job=None, *, flag=None, **facts):
        finding = {name: facts.pop(name) for name in of_flag & facts.keys()}
        job = job or new_job(name=f"app {next(names)}")
        case = new_flag(job, **finding, **(flag or {})).case
        for name, value in facts.items():
            setattr(case, name, value)
        case.save()
        return case

    return make


@pytest.fixture
def mds(db):
    """A metadata server that was traced until 12:30."""
    lake = Filesystem.objects.create(name="lake")
    server = Server.objects.create(name="mds1", filesystem=lake, kind=Server.Kind.MDS)
    traced = {"start": at("12:00"), "end": at("12:30"), "segment_id": 1}
    Coverage.objects.create(source="rpctrace", source_id=server.pk, **traced)
    return server


@pytest.fixture
def put_inside():
    """Put PanDA jobs of some numbers inside a batch job."""
    return rows.put_inside


@pytest.fixture(scope="module")
def heavy_job(module_db, tmp_path_factory):
    """The job of `stories.heavy_job`, ingested once for all tests of a module."""
    return stories.heavy_job(tmp_path_factory.mktemp("logs"))


@pytest.fixture(scope="module")
def _service_reads(heavy_job):
    """Two reads of mds1's services."""
    stories.read_services()


@pytest.fixture(scope="module")
def page_names(heavy_job, _service_reads):
    """Names and keys of one row of each kind that has a page; some are rows of alice."""
    return rows.page_names(heavy_job, _person("alice"))
