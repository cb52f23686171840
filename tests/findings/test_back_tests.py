"""Back-tests: with the current thresholds they agree with live evaluation of the same data."""

import subprocess
import sys
import time
from datetime import timedelta

import pytest
from django.db import connection, transaction

from ioportal.findings import back_tests
from ioportal.findings.evidence import subject_evidence
from ioportal.findings.models import BackTest, Flag, ThresholdSet
from ioportal.findings.thresholds import apply_thresholds
from ioportal.jobs.models import DirtyEvidence, Job, JobStatistics
from ioportal.site.models import Cluster
from ioportal.telemetry.stage_runs import drain
from tests.conftest import REPOSITORY
from tests.logs import DAY, Run, at, job_stats, rpc, sacct
from tests.processes import ENDS_WITH_PARENT

pytestmark = pytest.mark.usefixtures("site")

MILLION = 1_000_000
# Operations and queue of jobs that ran from 12:00 to 12:50.
JOBS = {
    "70": (5 * MILLION, "batch"),
    "71": (2_100_000, "batch"),
    "72": (1_900_000, "batch"),
    "73": (900_000, "debug"),
    "75": (10_000, "debug"),
}
UNREAD = Run("74", "14:00", "14:50", nodes="n9", user="u0")  # counters were polled at its end only


@pytest.fixture
def jobs(site, logs, ingest):
    """Ingest jobs and their counters."""
    runs = [
        Run(job, "12:00", "12:50", nodes=f"n{n + 1}", queue=queue, user=f"u{n % 2}")
        for n, (job, (_, queue)) in enumerate(JOBS.items())
    ]
    ingest("sacct", logs("s", sacct(*runs, UNREAD)), cluster="anvil")
    reads = {
        f"12:{n}0": {job: {"getattr": total * n // 5} for job, (total, _) in JOBS.items() if n}
        for n in range(6)
    }
    reads["14:50"] = {"74": {"getattr": 9 * MILLION}}
    paths = []
    for clock, counters in reads.items():
        text = job_stats("lake-MDT0000", {"x": {"open": 1}, **counters}, snapshot=clock)
        paths.append(logs(clock, text, read_at=at(clock)))
    ingest("job_stats", *paths)


@pytest.fixture
def back_test(db):
    """Run a back-test over the day and return it."""

    def run(rule="metadata-operations", **fields):
        period = {"start": DAY, "end": at("24:00")}
        defaults = {"rule": rule, "thresholds": {}, "requested_by": "root", **period}
        test = BackTest.objects.create(**{**defaults, **fields})
        drain(lambda _: back_tests.run_next())
        test.refresh_from_db()
        return test

    return run


def flagged(test, by):
    """Return the jobs flagged by the `current` or the `proposed` thresholds."""
    keys = [int(row["subject"]) for row in test.subjects if row[by]]
    return set(Job.objects.filter(pk__in=keys).values_list("batch_id", flat=True))


@pytest.mark.usefixtures("jobs")
def test_current_thresholds_flag_the_same_jobs_as_live_evaluation(evaluate, back_test):
    apply_thresholds(
        ThresholdSet(
            rule="metadata-operations",
            thresholds={"metadata_operations": 500_000},
            cluster=Cluster.objects.get(name="anvil"),
            queue="debug",
            reason="a test",
            set_by="root",
        )
    )
    evaluate()
    live = Flag.objects.current().filter(rule="metadata-operations")

    test = back_test()

    expected = set(live.good().values_list("job__batch_id", flat=True))
    assert flagged(test, "current") == flagged(test, "proposed") == expected == {"70", "71", "73"}
    suppressed = set(live.exclude(suppression_reasons=[]).values_list("job__batch_id", flat=True))
    assert suppressed == {"74"}
    assert test.counts["suppressed_current"] == test.counts["suppressed_proposed"] == 1
    assert test.evaluated == len(JOBS) + 1
    values = {row["subject"]: row["value"] for row in test.subjects}
    assert values == {str(flag.job_id): flag.value for flag in live.good()}


def test_back_tests_of_usual_values_agree_with_live_evaluation(evaluate, back_test):
    usual = [("relax", 1_000 + n, 10**6 + n) for n in range(60)]
    rows = [*usual, ("relax", 900_000, 10**6), ("relax", 1_000, 10**13), ("other", 900, 10**13)]
    jobs = Job.objects.bulk_create(
        Job(
            cluster=Cluster.objects.get(name="anvil"),
            batch_id=str(n),
            name=name,
            owner=f"user{n % 5}",
            node_count=2 + n % 2,
            submitted_at=start,
            started_at=start,
            ended_at=start + timedelta(minutes=50),
        )
        for n, (name, *_) in enumerate(rows)
        for start in [at("12:00") - timedelta(days=n < len(usual))]
    )
    JobStatistics.objects.bulk_create(
        JobStatistics(
            job=job,
            computed_at=at("13:00"),
            quality="good",
            metadata_operations=2 * operations,
            metadata_operations_per_node=operations,
            read_bytes=read,
        )
        for job, (_, operations, read) in zip(jobs, rows, strict=True)
    )
    DirtyEvidence.objects.mark(job.pk for job in jobs)
    live = set(evaluate())

    tests = {rule: back_test(rule) for rule in ("outlier", "reads-above-usual")}

    past = {(rule, job) for rule, test in tests.items() for job in flagged(test, "current")}
    assert (
        past
        == live
        == {
            ("outlier", "60"),
            ("reads-above-usual", "61"),
            ("reads-above-usual", "62"),
        }
    )


@pytest.mark.usefixtures("jobs")
def test_proposed_thresholds_apply_to_their_part_of_the_site_only(evaluate, back_test):
    evaluate()

    test = back_test(
        thresholds={"metadata_operations": 1, "operations_per_node_hour": 0, "capacity_share": 0},
        cluster=Cluster.objects.get(name="anvil"),
        queue="debug",
    )

    assert flagged(test, "current") == {"70", "71"}
    assert flagged(test, "proposed") == {"70", "71", "73", "75"}
    assert test.counts["owners_proposed"] == test.counts["cases_proposed"] == 2
    assert (test.counts["only_current"], test.counts["only_proposed"], test.counts["both"]) == (
        0,
        2,
        2,
    )
    assert [row["proposed"] and row["current"] for row in test.subjects] == [
        False,
        False,
        True,
        True,
    ]
    assert test.current_thresholds["metadata_operations"] == 2 * MILLION
    assert not ThresholdSet.objects.exists()


@pytest.mark.usefixtures("jobs")
def test_only_jobs_that_ended_in_the_period_are_evaluated(evaluate, back_test):
    evaluate()

    early = back_test(start=at("12:50"), end=at("14:50"))
    late = back_test(start=at("12:50:01"), end=at("14:50:01"))

    assert (early.evaluated, late.evaluated) == (len(JOBS), 1)


@pytest.mark.usefixtures("jobs")
def test_users_are_evaluated_by_day(evaluate, back_test):
    evaluate()

    values = {"metadata_operations": 4 * MILLION, "jobs": 2, "largest_share": 1}
    test = back_test("campaign", thresholds=values)

    assert [(row["subject"], row["value"]) for row in test.subjects] == [
        ("application u0:relax", 6_910_000),  # most of its project's 9,910,000
    ]
    assert (test.counts["current"], test.counts["proposed"]) == (0, 1)


def test_a_host_counts_once_with_its_worst_five_minutes(logs, ingest, evaluate, back_test):
    worst = [rpc(f"12:07:{n / 100:.2f}", "19@gni") for n in range(900)]
    mild = [rpc(f"12:{m:02}:{n / 10:.1f}", "19@gni") for m in (1, 12) for n in range(300)]
    ingest("rpctrace", logs("t", "\n".join(sorted(mild + worst))), server="mds1")
    evaluate()

    thresholds = {"rpcs": 250, "server_share": 0.1, "capacity_share": 0}
    test = back_test("host-outside-jobs", thresholds=thresholds)

    [row] = test.subjects
    assert (row["value"], row["until"]) == (900, at("12:10").isoformat())
    assert (test.counts["current"], test.counts["proposed"]) == (0, 1)


@pytest.mark.usefixtures("jobs")
def test_a_stopped_back_test_ends(evaluate, back_test, monkeypatch):
    evaluate()
    original = subject_evidence.for_ended_jobs

    def stop_then(*arguments):
        BackTest.objects.update(state=BackTest.State.STOPPED)
        return original(*arguments)

    monkeypatch.setattr(subject_evidence, "for_ended_jobs", stop_then)
    test = back_test()

    assert (test.state, test.subjects, test.done_share) == ("stopped", [], 0)


def test_a_failed_back_test_stores_its_error_and_the_next_runs(back_test):
    BackTest.objects.create(
        rule="gone", thresholds={}, start=DAY, end=at("24:00"), requested_by="root"
    )

    assert back_test().state == "done"
    assert BackTest.objects.get(rule="gone").error == "ValueError: The rule gone no longer exists."


_CHILD = (
    "import django; django.setup(); from ioportal.findings import tasks; tasks.run_back_tests()"
)


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_a_back_test_restarts_after_its_worker_was_killed(environment, evaluate, jobs):
    evaluate()
    test = BackTest.objects.create(
        rule="outlier", thresholds={}, start=DAY, end=at("24:00"), requested_by="root"
    )
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("LOCK TABLE findings_jobevidence")  # the worker blocks here
        worker = subprocess.Popen(
            [*ENDS_WITH_PARENT, sys.executable, "-c", _CHILD], env=environment, cwd=REPOSITORY
        )
        _wait_for(BackTest.objects.filter(state="running").exists)
        worker.kill()
        worker.wait()
    _wait_for(_stage_is_unlocked)
    assert BackTest.objects.get().state == "running"

    drain(lambda _: back_tests.run_next())

    test.refresh_from_db()
    assert (test.state, test.evaluated) == ("done", len(JOBS) + 1)


def _stage_is_unlocked():
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM pg_locks JOIN pg_database d ON d.oid = database "
            "WHERE locktype = 'advisory' AND datname = current_database()"
        )
        return not cursor.fetchall()


def _wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, condition
        time.sleep(0.05)
