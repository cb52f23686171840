"""Pending work of all stages: the latest data first, and a share for the rows that wait longest."""

from datetime import UTC, datetime, timedelta

import pytest

from ioportal.jobs.models import DirtyEvidence, DirtyStatistics
from ioportal.telemetry import stage_runs
from ioportal.telemetry.models import DirtyImpact, DirtyIo

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def row(model, ends):
    if model.ends == "until":
        return model(job_id=round(ends.timestamp()), until=ends)
    return model(start=ends - DAY, end=ends)


@pytest.mark.django_db
@pytest.mark.parametrize("model", [DirtyIo, DirtyImpact, DirtyStatistics, DirtyEvidence])
def test_live_data_is_claimed_before_a_year_that_is_loaded_after_it(model):
    days_ago = [300, 200, 0, *range(1, 200)]  # in the order of their insertion
    model.objects.bulk_create(row(model, NOW - DAY * days) for days in days_ago)

    claimed = model.objects.claim(8)

    ends = [(NOW - getattr(each, model.ends)) // DAY for each in claimed]
    assert ends == [300, 200, 0, 1, 2, 3, 4, 5]


def test_slices_of_old_work_last_about_a_second(monkeypatch):
    left, clock, limits = 3_000, 0.0, []

    def stage(limit):
        nonlocal left, clock
        done = min(limit, left)
        left, clock = left - done, clock + done * 0.1
        limits.append(limit)
        return done

    monkeypatch.setattr(stage_runs, "monotonic", lambda: clock)

    assert stage_runs.drain(stage, turn_s=20)
    assert not stage_runs.drain(stage)

    assert left == 0
    assert limits[:4] == [100, 15, 15, 15]
