"""Severity by harm: many operations are a notice where others hardly waited, as far as is known."""

import numpy as np
import polars as pl
import pytest

from ioportal.findings import evaluation
from ioportal.findings.evidence.claims import without_claims
from ioportal.findings.evidence.harm import with_harm
from ioportal.findings.evidence.subject_evidence import Evidence
from ioportal.findings.models import Case, Flag, JobEvidence
from ioportal.jobs.models import DirtyEvidence, Job, JobStatistics
from ioportal.rules.rule import Subject
from ioportal.site.models import Cluster, Filesystem
from ioportal.telemetry.stage_runs import drain
from tests import loading
from tests.logs import Run, at, rpc

pytestmark = pytest.mark.usefixtures("module_site")
TOO_MANY = ("metadata-operations", "77")


@pytest.fixture
def flag(logs, ingest, jobs, read, evaluate):
    """Return the flag of a job with 3 million stats, with a trace from a time of day on."""

    def run(traced_from):
        jobs(Run("77", nodes="n1", end=None))
        if traced_from:
            trace = "\n".join(map(rpc, (traced_from, "12:20")))
            ingest("rpctrace", logs("trace", trace), server="mds1")
        read("11:59", None)
        read("12:19", 3_000_000)
        return evaluate()[TOO_MANY]

    return run


def test_a_harmless_job_gets_a_notice_which_needs_no_triage(flag):
    assert flag("10:00").severity == Flag.Severity.NOTICE
    assert not Case.objects.to_triage().exists()


@pytest.mark.parametrize("traced_from", [None, "11:50"], ids=["no trace", "short trace"])
def test_a_large_load_of_unknown_harm_is_a_warning(flag, traced_from):
    assert flag(traced_from).severity == Flag.Severity.WARNING
    assert Case.objects.to_triage().filter(rule=TOO_MANY[0]).exists()


@pytest.mark.parametrize(
    ("user", "start", "severity"),
    [
        ("mallory", "12:10", Flag.Severity.NOTICE),
        ("alice", "12:10", Flag.Severity.WARNING),
        ("mallory", "12:18:59", Flag.Severity.WARNING),
    ],
    ids=["minutes", "own jobs", "a second"],
)
def test_a_large_load_that_others_on_the_node_may_have_sent_is_a_notice(
    flag, jobs, user, start, severity
):
    jobs(Run("80", nodes="n1", user=user, start=start, end="12:20"))

    assert flag(None).severity == severity


def test_unknown_harm_of_groups_is_of_the_jobs_that_are_proven(jobs, django_assert_num_queries):
    jobs(Run("77", nodes="n1"), Run("80", nodes="n1", user="mallory"), Run("81", nodes="n2"))
    loading.evaluate()
    statistics = JobStatistics.objects.filter(job__owner="alice")
    statistics.update(quality="good", metadata_operations=3_000_000)
    columns = {"hour_operations": pl.Float64, "capacity_per_s": pl.Float64, "harm_s": pl.Float64}
    row = {"until": at("12:30"), "capacity_is_registered": True}
    row |= dict.fromkeys(columns)
    row |= {"hour_operations": 0.3 * 5_000 * 3_600, "capacity_per_s": 5_000.0}
    rows = [{"subject": user, **row} for user in ("alice", "mallory")]
    frame = pl.DataFrame(rows, schema_overrides=columns)

    @django_assert_num_queries(2)
    def harm_s():
        return without_claims(Evidence(Subject.USER, frame)).frame["harm_s"].to_list()

    assert harm_s() == [0, None]
    statistics.filter(job__batch_id="81").update(metadata_operations=6_000_001)
    assert harm_s() == [None, None]


def test_a_warning_of_unknown_harm_falls_when_the_harm_is_known(flag, logs, ingest, read, evaluate):
    assert flag(None).severity == Flag.Severity.WARNING

    ingest("rpctrace", logs("late", "\n".join(map(rpc, ("10:00", "12:40")))), server="mds1")
    read("12:39", 3_000_100)
    assert evaluate()[TOO_MANY].severity == Flag.Severity.NOTICE


JOBS, USERS = 200, 20
HEAVY = 400_000  # operations within five minutes


def test_jobs_with_counters_alone_are_accused_from_a_fifth_of_the_capacity_on():
    """In a centre with job_stats only, many small jobs search paths and make short-lived files."""
    draw = np.random.default_rng(34)
    lake, cluster = Filesystem.objects.get(name="lake"), Cluster.objects.get(name="anvil")
    jobs = Job.objects.bulk_create(
        Job(
            cluster=cluster,
            batch_id=f"{10_000 + n}",
            owner=f"user{n % USERS}",
            project=f"P{n % 7}",
            name="search",
            node_count=8,
            submitted_at=at("12:00"),
            started_at=at("12:00"),
            ended_at=at("13:00"),
        )
        for n in range(JOBS)
    )
    peaks = [HEAVY, *draw.uniform(12_000, 0.19 * 5_000 * 300, JOBS - 1).tolist()]
    JobStatistics.objects.bulk_create(
        JobStatistics(
            job=job,
            computed_at=at("13:01"),
            quality="good",
            duration_s=3_600,
            node_count=8,
            metadata_operations=12 * peak,
            metadata_operations_per_node=12 * peak / 8,
            opens=8 * peak,
            closes=peak,
            open_close_ratio=8,
            count_mknod=2 * peak,
            count_unlink=2 * peak,
        )
        for job, peak in zip(jobs, peaks, strict=True)
    )
    JobEvidence.objects.bulk_create(
        JobEvidence(
            job=job,
            filesystem=lake,
            seen_until=job.ended_at,
            peak_operations=peak,
            sustained_operations=2 * peak,
        )
        for job, peak in zip(jobs, peaks, strict=True)
    )
    DirtyEvidence.objects.mark([job.pk for job in jobs])
    drain(evaluation.evaluate_pending)

    flags = Flag.objects.current()
    assert flags.filter(rule="open-close-imbalance").count() > JOBS / 2
    accused = flags.filter(severity__gt=Flag.Severity.NOTICE)
    assert set(accused.values_list("job", flat=True)) == {jobs[0].pk}
    assert {flag.severity for flag in accused} == {Flag.Severity.WARNING}
    assert not accused.filter(rule="open-close-imbalance").exists()


def test_the_busiest_hour_of_a_group_bounds_its_harm_where_it_was():
    columns = {
        "filesystem": pl.Int64,
        "load_filesystem": pl.Int64,
        **dict.fromkeys(("until", "load_at"), pl.Datetime("us", "UTC")),
        **dict.fromkeys(("hour_operations", "capacity_per_s"), pl.Float64),
        "capacity_is_registered": pl.Boolean,
        **dict.fromkeys(("impact_s", "impact_share", "impact_is_estimated"), pl.Float64),
    }
    a_fifth = 0.2 * 5_000 * 3_600
    pond = Filesystem.objects.get(name="pond").pk
    rows = [
        (None, pond, at("13:00"), at("12:00"), load, 5_000, True, None, None, None)
        for load in (a_fifth, a_fifth - 1)
    ]
    groups = pl.DataFrame(rows, schema=columns, orient="row")

    assert with_harm(groups)["harm_s"].to_list() == [None, 0]


@pytest.mark.parametrize(
    ("operations", "is_registered", "harm_s"),
    [  # 20 % of the capacity is 1,000 a second
        (None, True, 0),
        (299_000, True, 0),
        (300_000, True, None),
        pytest.param(300_000, False, 0, id="an assumed capacity bounds nothing"),
        pytest.param(300_000, None, 0, id="capacity unknown"),
    ],
)
def test_counters_bound_unknown_harm(operations, is_registered, harm_s):
    subjects = pl.DataFrame(
        {
            "filesystem": [1],
            "until": [at("12:00")],
            "load_filesystem": [None],
            "load_at": [None],
            "capacity_per_s": [5_000.0],
            "capacity_is_registered": [is_registered],
            "peak_operations": [operations],
            "impact_s": [None],
            "impact_share": [None],
            "impact_is_estimated": [None],
        },
        schema_overrides={
            "until": pl.Datetime("us", "UTC"),
            "load_at": pl.Datetime("us", "UTC"),
            "peak_operations": pl.Float64,
            "capacity_is_registered": pl.Boolean,
        },
    )

    assert with_harm(subjects)["harm_s"].to_list() == [harm_s]


@pytest.mark.parametrize(
    ("is_estimated", "harm_s"),
    [
        pytest.param(0, 76, id="measured"),
        pytest.param(1, 38, id="estimated: within a factor of two"),
    ],
)
def test_harm_is_what_others_waited_at_least(is_estimated, harm_s):
    subjects = pl.DataFrame(
        {
            "filesystem": [1],
            "until": [at("12:00")],
            "load_filesystem": [1],
            "load_at": [at("12:00")],
            "capacity_is_registered": [True],
            "impact_s": [76.0],
            "impact_is_estimated": [is_estimated],
        },
        schema_overrides=dict.fromkeys(("until", "load_at"), pl.Datetime("us", "UTC")),
    )

    assert with_harm(subjects)["harm_s"].to_list() == [harm_s]
