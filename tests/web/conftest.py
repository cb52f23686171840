"""Users, and jobs that they see."""

from datetime import timedelta
from functools import cache
from itertools import count
from string import ascii_lowercase

import pytest
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group, User

from ioportal.activity.models import Incident
from ioportal.flags import cases
from ioportal.flags.models import BackTest, Flag, ThresholdSet
from ioportal.jobs.models import Job, JobStatistics, WorkloadJob
from ioportal.site.models import Cluster, Filesystem, Server
from ioportal.studies.models import Population
from ioportal.telemetry.models import Coverage
from tests import loading
from tests.collectors.lustre.counters import FIXTURES
from tests.logs import DAY, at
from tests.web import stories

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
    return User.objects.create(username=name, password=_hashed_password(name), **facts)


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


@pytest.fixture
def as_alice(client, alice):
    """A client logged in as alice."""
    client.force_login(alice)
    return client


@pytest.fixture
def as_staff(client, sam):
    """A client logged in as staff."""
    client.force_login(sam)
    return client


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


def flag_job(job, **facts):
    """Store a flag of a job and its case, without the job's data."""
    flag = Flag(
        **{
            "rule": "metadata-operations",
            "rule_version": 1,
            "subject_kind": "job",
            "subject": str(job.pk),
            "job": job,
            "owner": job.owner,
            "cluster": job.cluster,
            "severity": Flag.Severity.WARNING,
            "since": NOON,
            "until": at("13:00"),
            "value": 3e6,
            "numbers": {"metadata_operations": 3e6},
            "thresholds": {"metadata_operations": 2e6},
            "scope": "rule defaults",
            "advice": "Keep software off Lustre.",
            **facts,
        }
    )
    if flag.subject_kind != "job":
        flag.job = None
    cases.assign([flag], [flag.job.name if flag.job else ""])
    flag.save()
    cases.update([flag], [])
    return flag


@pytest.fixture
def new_flag(new_job):
    """Create a flag of a job, by default of a new one."""
    return lambda job=None, **facts: flag_job(job or new_job(), **facts)


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
def heavy_job(module_db, tmp_path_factory):
    """The job of `stories.heavy_job`, ingested once for all tests of a module."""
    return stories.heavy_job(tmp_path_factory.mktemp("logs"))


@pytest.fixture(scope="module")
def _service_reads(heavy_job):
    """Two reads of mds1's services."""
    for minute, name in enumerate(("get_param_2.12_a", "get_param_2.12_b")):
        path = FIXTURES / "lustre_service_stats" / f"{name}.txt"
        loading.ingest("mds_stats", path, server="mds1", at=f"2017-07-05T12:0{minute}:00Z")


@pytest.fixture
def page_names(heavy_job, _service_reads, put_inside, alice):
    """Names and keys of one row of each kind that has a page."""
    facts = {"start": at("12:00"), "end": at("13:00")}
    put_inside(heavy_job, 4242)
    Population.objects.create(slug="mine", name="Mine", query="user=alice", owner=alice)
    server = Server.objects.get(name="mds1")
    flag = flag_job(heavy_job)
    outlier = flag_job(
        heavy_job,
        rule="outlier",
        value=6,
        numbers={"z_score": 6.0, "metadata_operations_per_node": 1e6, "usual_operations": 100},
        thresholds={"z_score": 3.0},
    )
    thresholds = ThresholdSet.objects.create(
        rule=flag.rule, thresholds={"metadata_operations": 50_000}
    )
    test = BackTest.objects.create(rule=flag.rule, thresholds={}, requested_by="sam", **facts)
    return {
        "job": heavy_job.pk,
        "segment": heavy_job.records.get().segment_id,
        "incident": Incident.objects.create(title="Slow", server=server, **facts).pk,
        "case": flag.case_id,
        "flag": flag.pk,
        "outlier": outlier.pk,
        "rule": flag.rule,
        "thresholds": thresholds.pk,
        "test": test.pk,
    }
