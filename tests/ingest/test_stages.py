"""Stages: each has a task, and runs on one worker at a time."""

from datetime import timedelta

import pytest
from django.db import connection

from ioportal.celery import app
from ioportal.core.stages import schedule
from ioportal.telemetry.models import StageFailure
from ioportal.telemetry.stage_runs import drain_alone


def test_workers_have_every_scheduled_task():
    app.autodiscover_tasks(force=True)

    assert schedule(timedelta(seconds=5)).keys() <= app.tasks.keys()


def test_a_stage_runs_until_no_work_is_left(db):
    remaining = [2, 1, 0]

    drain_alone("counting", lambda _limit: remaining.pop(0))

    assert not remaining


@pytest.mark.django_db(transaction=True)
def test_a_worker_skips_a_stage_that_another_worker_runs():
    other = connection.copy()
    runs = []

    def stage(_limit):
        runs.append("work")
        return 0

    with other.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(7310, hashtext('counting'))")
        drain_alone("counting", stage)
        runs_while_locked = list(runs)
        cursor.execute("SELECT pg_advisory_unlock(7310, hashtext('counting'))")
    other.close()
    drain_alone("counting", stage)

    assert not runs_while_locked
    assert runs == ["work"]


@pytest.mark.django_db(transaction=True)
def test_stage_failures_are_counted_until_a_run_succeeds():
    def fail(_limit):
        raise ValueError("row 7 is damaged")

    other = connection.copy()
    for _ in range(2):
        with pytest.raises(ValueError, match="row 7"):
            drain_alone("counting", fail)
    with other.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(7310, hashtext('counting'))")
        drain_alone("counting", lambda _limit: 0)  # skipped: the stage is locked
        cursor.execute("SELECT pg_advisory_unlock(7310, hashtext('counting'))")
    other.close()
    failure = StageFailure.objects.get()
    drain_alone("counting", lambda _limit: 0)

    assert (failure.stage, failure.runs) == ("counting", 2)
    assert failure.error == "ValueError: row 7 is damaged"
    assert failure.since <= failure.failed_at
    assert "worker's log" in failure.remedy
    assert not StageFailure.objects.exists()
