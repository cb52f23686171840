"""The capacity of a server from windows whose curve is known."""

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from ioportal.analysis.capacity import (
    MIN_JOBS,
    WINDOWS,
    Capacity,
    Refusal,
    Resampled,
    capacity,
    more_jobs,
)

BEGIN = datetime(2026, 9, 1, tzinfo=UTC)
MINUTES = 24 * 60
COST_S = 50e-6


def windows(load, factor, free_factor=None):
    """Return windows of a minute with a load (usual seconds per second) and a factor of times."""
    count = len(load)
    usual_us = np.asarray(load) * 60e6
    free = np.asarray(factor if free_factor is None else free_factor)
    return pl.DataFrame(
        {
            "start": [BEGIN + timedelta(minutes=n) for n in range(count)],
            "end": [BEGIN + timedelta(minutes=n + 1) for n in range(count)],
            "day": np.arange(count) // MINUTES,
            "requests": usual_us / (COST_S * 1e6),
            "work_us": usual_us,
            "took_us": usual_us * factor,
            "usual_us": usual_us,
            "free_took_us": 0.2 * usual_us * free,
            "free_usual_us": 0.2 * usual_us,
        },
        schema=WINDOWS,
    )


def daily(days, highest):
    """Return loads between a quiet night and the highest load of noon."""
    minute = np.arange(days * MINUTES)
    return highest * (0.05 + 0.95 * np.sin(np.pi * (minute % MINUTES) / MINUTES) ** 2)


def shared(load, power):
    """Return the factor of a server that shares its power between requests: twice at half of it."""
    return 1 / (1 - load / power)


def test_a_server_that_shares_its_power_has_its_knee_at_half_of_it():
    load = daily(10, 6.0)

    found = capacity(windows(load, shared(load, 8.0)))

    assert isinstance(found, Capacity)
    assert found.knee.value == pytest.approx(4.0, rel=0.01)
    assert found.knee.low < 4.0 < found.knee.high
    assert found.baseline == pytest.approx(1.0, rel=0.01)
    assert found.resampled is Resampled.DAYS
    assert (found.units, found.slow_units) == (10, 10)
    assert found.limit.scaled(1 / found.cost_s).value == pytest.approx(80_000, rel=0.01)


def test_a_load_below_the_knee_is_safe_up_to_the_highest_seen():
    load = daily(10, 3.0)

    found = capacity(windows(load, shared(load, 8.0)))

    assert found.knee is None
    assert found.safe_load == pytest.approx(3.0, rel=0.03)
    assert found.limit.high is None
    assert found.headroom.value == max(0.0, found.safe_load - found.busy_load)
    assert found.headroom.high is None


def test_headroom_is_unknown_if_busy_hours_are_beyond_the_steady_loads():
    load = daily(10, 3.0)
    busy = np.arange(600, len(load), MINUTES)[:, None] + np.arange(120)
    load[busy] = np.where(busy % 2, 12.0, 1.0)  # never steady

    found = capacity(windows(load, shared(load, 20.0)))

    assert found.knee is None
    assert found.busy_load > found.safe_load
    assert found.headroom is None
    assert isinstance(more_jobs(found, np.full(30, 0.1), np.arange(30) % 10), Refusal)


def test_rare_loads_do_not_widen_the_bins_of_others():
    load = daily(10, 3.0)
    load[600:603] = 40.0  # steady, but less than 8 windows

    found = capacity(windows(load, shared(load, 80.0)))

    assert found.safe_load == pytest.approx(3.0, rel=0.03)
    assert found.curve["load"].max() == pytest.approx(3.0, rel=0.03)


def test_a_knee_of_one_day_has_no_upper_bound():
    load = daily(10, 3.0)
    load[5 * MINUTES : 5 * MINUTES + 60] = 5.0

    found = capacity(windows(load, shared(load, 8.0)))

    assert 3.0 < found.knee.value < 5.0
    assert found.knee.high is None  # a third of the resampled sets do not have the day
    assert found.slow_units == 1


@pytest.mark.parametrize(
    "cause", ["locks", "locks of all threads", "restart", "changes of the load"]
)
def test_delays_that_are_not_due_to_load_make_no_knee(cause):
    load = daily(10, 3.0)
    factor, free = shared(load, 8.0), shared(load, 8.0)
    slow = np.arange(700, len(load), MINUTES)[:, None] + np.arange(40)
    restarts = []
    if cause == "changes of the load":  # minutes between an idle and a blocked server
        load[slow[:, ::8]] = 6.0
        factor[slow[:, ::8]] = free[slow[:, ::8]] = 20
    elif cause == "restart":
        slow = slow[:, :9]
        load[slow] = 3.6
        factor[slow] = free[slow] = 20
        restarts = [BEGIN + timedelta(minutes=int(day[0])) for day in slow]
    else:  # a load of its own, so that its bins have no other windows
        load[slow] = 3.6
        factor[slow] = 20
        free[slow] = shared(3.6, 8.0) if cause == "locks" else 5

    found = capacity(windows(load, factor, free), restarts)

    assert found.knee is None


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (windows([], []), "Too few windows"),
        (windows([2.0] * 5_000, [1.0] * 5_000), "The load varies too little"),
        (windows(daily(10, 3.0)[:240], [1.0] * 240), "Too few hours"),
    ],
)
def test_no_capacity_is_stated_on_too_little_data(frame, reason):
    assert capacity(frame).reason.startswith(reason)


def test_more_jobs_fill_the_headroom():
    load = daily(10, 6.0)
    server = capacity(windows(load, shared(load, 8.0)))
    idle = capacity(windows(load / 3, shared(load / 3, 8.0)))
    loads, days = np.array([0.1, 0.2, 0.3] * 10), np.arange(30) % 10

    more = more_jobs(idle, loads, days)

    assert more.more.value == pytest.approx((idle.safe_load - idle.busy_load) / 0.2)
    assert more.more.high is None
    assert (more.mean_load, more.median_load) == pytest.approx((0.2, 0.2))
    assert more_jobs(server, loads, days).more.value < 0  # busy hours are beyond the knee
    assert isinstance(more_jobs(idle, loads[: MIN_JOBS - 1], days[: MIN_JOBS - 1]), Refusal)
    assert isinstance(more_jobs(idle, np.zeros(9), days[:9]), Refusal)
