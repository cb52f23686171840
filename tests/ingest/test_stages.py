"""Stages in workers: one worker at a stage is enough."""

import pytest
from django.db import connection

from ioportal.stages import drain_alone


def test_a_stage_runs_until_it_finds_nothing(db):
    left = [2, 1, 0]

    drain_alone(lambda: left.pop(0))

    assert not left


@pytest.mark.django_db(transaction=True)
def test_a_worker_does_not_wait_for_another_one_at_the_same_stage():
    other = connection.copy()
    found = []

    def stage():
        found.append("work")
        return 0

    with other.cursor() as cursor:
        name = f"{stage.__module__}.{stage.__qualname__}"
        cursor.execute("SELECT pg_advisory_lock(7310, hashtext(%s))", [name])
        drain_alone(stage)
        missed = list(found)
        cursor.execute("SELECT pg_advisory_unlock(7310, hashtext(%s))", [name])
    other.close()
    drain_alone(stage)

    assert not missed
    assert found == ["work"]
