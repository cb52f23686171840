"""Concurrent and aborted evaluation: each finding creates one flag."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection, transaction

from ioportal.findings import evaluation
from ioportal.findings.cases import case_lifecycle
from ioportal.findings.models import Case, CaseEvent, Flag, FlagEvent, JobEvidence
from ioportal.jobs import statistics
from ioportal.jobs.models import DirtyEvidence
from ioportal.telemetry.stage_runs import drain
from tests.logs import Run, at, job_stats, sacct

WORKERS, JOBS = 4, 12
READS = {"11:59": 0, "12:09": 1_500_000, "12:19": 3_000_000}


@pytest.fixture
def jobs_above_threshold(site, logs, ingest):
    """Ingest jobs above the threshold and refresh their statistics, ready for evaluation."""
    runs = [Run(str(number), nodes=f"n{number}", end=None) for number in range(1, JOBS + 1)]
    ingest("sacct", logs("sacct", sacct(*runs)), cluster="anvil")
    for clock, stats in READS.items():
        entries = {run.batch_id: {"getattr": stats + 1} for run in runs}
        text = job_stats("lake-MDT0000", entries, snapshot=clock)
        ingest("job_stats", logs(f"read-{clock}", text), at=at(clock).isoformat())
    drain(statistics.refresh_statistics)


def flagged_jobs():
    flags = Flag.objects.filter(rule="metadata-operations")
    return sorted(int(flag.job.batch_id) for flag in flags.select_related("job"))


@pytest.mark.django_db(transaction=True)
def test_concurrent_workers_flag_each_job_once(jobs_above_threshold):
    start = Barrier(WORKERS)

    def evaluate(_):
        try:
            start.wait()
            while evaluation.evaluate_pending(limit=2):
                pass
        finally:
            connection.close()

    with ThreadPoolExecutor(WORKERS) as threads:
        list(threads.map(evaluate, range(WORKERS)))

    assert flagged_jobs() == list(range(1, JOBS + 1))
    opened = FlagEvent.objects.filter(kind="opened", flag__rule="metadata-operations")
    assert opened.count() == JOBS
    assert JobEvidence.objects.count() == JOBS
    assert not DirtyEvidence.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_concurrent_workers_create_one_case(site):
    finding = {
        "rule": "metadata-operations",
        "rule_version": 1,
        "subject_kind": "job",
        "owner": "alice",
        "severity": Flag.Severity.WARNING,
        "since": at("12:00"),
        "until": at("13:00"),
        "value": 3e6,
        "numbers": {},
        "thresholds": {},
    }
    start = Barrier(WORKERS)

    def flag_jobs(worker):
        try:
            flags = [Flag(**finding, subject=f"{worker}-{number}") for number in range(3)]
            start.wait()
            with transaction.atomic():
                case_lifecycle.assign(flags, ["relax", "relax", "plot"])
                Flag.objects.bulk_create(flags)
        finally:
            connection.close()

    with ThreadPoolExecutor(WORKERS) as threads:
        list(threads.map(flag_jobs, range(WORKERS)))

    assert sorted(case.flags.count() for case in Case.objects.all()) == [4, 8]
    assert [event.kind for event in CaseEvent.objects.all()] == ["opened", "opened"]


def test_work_of_a_crashed_worker_is_evaluated_again(jobs_above_threshold):
    pending = set(DirtyEvidence.objects.values_list("job_id", flat=True))
    with transaction.atomic():
        evaluation.evaluate_pending()
        assert flagged_jobs()
        transaction.set_rollback(True)  # as after a lost connection

    assert flagged_jobs() == []
    assert set(DirtyEvidence.objects.values_list("job_id", flat=True)) == pending

    drain(evaluation.evaluate_pending)

    assert flagged_jobs() == list(range(1, JOBS + 1))
