"""Judges beside each other, and one that dies: what is flagged is flagged once."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection, transaction

from ioportal.flags import evaluation
from ioportal.flags.models import Flag, FlagEvent, JobEvidence
from ioportal.jobs import statistics
from ioportal.jobs.models import DirtyEvidence
from ioportal.stages import drain
from tests.logs import Run, at, job_stats, sacct

JUDGES, JOBS = 4, 12
READS = {"11:59": 0, "12:09": 1_500_000, "12:19": 3_000_000}


@pytest.fixture
def too_many(site, logs, ingest):
    """Load jobs that each do too much, up to where the judge's stage begins."""
    runs = [Run(str(number), nodes=f"n{number}", end=None) for number in range(1, JOBS + 1)]
    ingest("sacct", logs("sacct", sacct(*runs)), cluster="anvil")
    for clock, stats in READS.items():
        entries = {run.batch_id: {"getattr": stats + 1} for run in runs}
        text = job_stats("lake-MDT0000", entries, snapshot=clock)
        ingest("job_stats", logs(f"read-{clock}", text), at=at(clock).isoformat())
    drain(statistics.refresh_statistics)


def flagged():
    flags = Flag.objects.filter(rule="metadata-operations")
    return sorted(int(flag.job.batch_id) for flag in flags.select_related("job"))


@pytest.mark.django_db(transaction=True)
def test_several_judges_at_once_flag_each_job_once(too_many):
    together = Barrier(JUDGES)

    def evaluate(_):
        try:
            together.wait()
            while evaluation.evaluate_pending(limit=2):
                pass
        finally:
            connection.close()

    with ThreadPoolExecutor(JUDGES) as threads:
        list(threads.map(evaluate, range(JUDGES)))

    assert flagged() == list(range(1, JOBS + 1))
    opened = FlagEvent.objects.filter(kind="opened", flag__rule="metadata-operations")
    assert opened.count() == JOBS
    assert JobEvidence.objects.count() == JOBS
    assert not DirtyEvidence.objects.exists()


def test_what_a_judge_that_died_had_claimed_is_judged_by_the_next(too_many):
    waiting = set(DirtyEvidence.objects.values_list("job_id", flat=True))
    with transaction.atomic():
        evaluation.evaluate_pending()
        assert flagged()
        transaction.set_rollback(True)  # as the database does where a connection is cut

    assert flagged() == []
    assert set(DirtyEvidence.objects.values_list("job_id", flat=True)) == waiting

    drain(evaluation.evaluate_pending)

    assert flagged() == list(range(1, JOBS + 1))
