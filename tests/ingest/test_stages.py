"""Stages in workers: one worker at a stage is enough."""

import pytest
from django.db import connection

from ioportal.stages import drain_alone
from ioportal.telemetry.models import StageFailure


def test_a_stage_runs_until_it_finds_nothing(db):
    left = [2, 1, 0]

    drain_alone("counting", lambda: left.pop(0))

    assert not left


@pytest.mark.django_db(transaction=True)
def test_a_worker_does_not_wait_for_another_one_at_the_same_stage():
    other = connection.copy()
    found = []

    def stage():
        found.append("work")
        return 0

    with other.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(7310, hashtext('counting'))")
        drain_alone("counting", stage)
        missed = list(found)
        cursor.execute("SELECT pg_advisory_unlock(7310, hashtext('counting'))")
    other.close()
    drain_alone("counting", stage)

    assert not missed
    assert found == ["work"]


@pytest.mark.django_db(transaction=True)
def test_failures_of_a_stage_count_until_a_run_succeeds():
    def fail():
        raise ValueError("row 7 is damaged")

    other = connection.copy()
    for _ in range(2):
        with pytest.raises(ValueError, match="row 7"):
            drain_alone("counting", fail)
    with other.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(7310, hashtext('counting'))")
        drain_alone("counting", lambda: 0)  # skipped: another worker has the stage
        cursor.execute("SELECT pg_advisory_unlock(7310, hashtext('counting'))")
    other.close()
    failure = StageFailure.objects.get()
    drain_alone("counting", lambda: 0)

    assert (failure.stage, failure.runs) == ("counting", 2)
    assert failure.error == "ValueError: row 7 is damaged"
    assert failure.since <= failure.failed_at
    assert "worker's log" in failure.remedy
    assert not StageFailure.objects.exists()
