"""The capacity of a server from windows whose curve is known."""

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from ioportal.load.analysis.capacity import (
    WINDOWS,
    Capacity,
    Resampled,
    capacity,
)
from ioportal.load.analysis.safe_load import MAX_GAP_RATIO

pytestmark = pytest.mark.long

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
    """Return the factor of a server that shares its power between requests: 2 at half the power."""
    return 1 / (1 - load / power)


def varied(days, highest, seed):
    """Return daily loads whose days and quarters of an hour differ, and factors with noise."""
    chance = np.random.default_rng(seed)
    quarters = np.repeat(np.exp(0.1 * chance.standard_normal(days * MINUTES // 15)), 15)
    of_day = np.repeat(np.exp(0.15 * chance.standard_normal(days)), MINUTES)
    load = daily(days, highest) * quarters * of_day
    noise = np.exp(0.1 * chance.standard_normal(len(load)))
    noise *= np.repeat(np.exp(0.05 * chance.standard_normal(days)), MINUTES)
    return load, noise


def burst(load, day, minutes, level):
    """Set the load of some minutes of a night."""
    start = day * MINUTES + 120
    load[start : start + minutes] = level


def test_a_server_that_shares_its_power_has_its_knee_at_half_of_it():
    load = daily(10, 6.0)

    found = capacity(windows(load, shared(load, 8.0)))

    assert isinstance(found, Capacity)
    assert found.knee.value == pytest.approx(4.0, rel=0.01)
    assert found.knee.low < 4.0 < found.knee.high
    assert found.baseline == pytest.approx(1.0, rel=0.01)
    assert found.resampled is Resampled.DAYS
    assert (found.units, found.slow.units) == (10, 10)
    assert found.limit.scaled(1 / found.cost_s).value == pytest.approx(80_000, rel=0.01)


def test_a_load_below_the_knee_is_safe_up_to_the_highest_seen():
    load = daily(10, 3.0)

    found = capacity(windows(load, shared(load, 8.0)))

    assert found.knee is None
    assert found.safe.load == pytest.approx(3.0, rel=0.03)
    assert (found.safe.days, found.days) == (10, 10)
    assert found.safe.windows == pytest.approx(len(load), rel=0.01)
    assert found.limit.high is None
    assert found.headroom.value == max(0.0, found.safe.load - found.busy_load)
    assert found.headroom.high is None


@pytest.mark.parametrize("days", [1, 4, 10], ids="of {} days".format)
@pytest.mark.parametrize("minutes", [3, 9, 10, 90])
def test_a_burst_on_one_day_does_not_move_the_advice(days, minutes):
    load = daily(days, 3.0)
    calm = capacity(windows(load, shared(load, 200.0)))
    burst(load, 0, minutes, 45.0)

    found = capacity(windows(load, shared(load, 200.0)))

    assert found.safe.load == pytest.approx(calm.safe.load, rel=0.01)
    assert found.safe.highest_seen == pytest.approx(45.0)


@pytest.mark.parametrize("seed", range(3))
def test_one_more_window_at_any_load_moves_the_advice_by_a_few_per_cent(seed):
    load, noise = varied(10, 3.0, seed)
    calm = capacity(windows(load, shared(load, 80.0) * noise))
    for level in (*np.linspace(1.0, 1.6, 5) * calm.safe.load, 30.0):
        higher = load.copy()
        burst(higher, seed, 3, level)  # one of the three has equal neighbours

        found = capacity(windows(higher, shared(higher, 80.0) * noise))

        assert found.safe.load == pytest.approx(calm.safe.load, rel=0.04)


def test_one_more_day_beyond_a_gap_does_not_move_the_advice():
    load = daily(10, 3.0)
    for day in range(2):
        burst(load, day, 5, 45.0)
    two = capacity(windows(load, shared(load, 200.0)))
    burst(load, 2, 5, 45.0)

    found = capacity(windows(load, shared(load, 200.0)))

    assert found.safe.load == pytest.approx(two.safe.load, rel=0.001)


def test_loads_beyond_a_gap_count_once_the_gap_is_filled():
    load = daily(10, 3.0)
    for day in range(10):
        burst(load, day, 60, 9.0)
    gap = capacity(windows(load, shared(load, 80.0)))
    ramp = 3.0 * (MAX_GAP_RATIO - 0.01) ** np.arange(1, 13)
    for day in range(10):
        burst(load, day, 5 * len(ramp), np.repeat(ramp, 5))

    filled = capacity(windows(load, shared(load, 80.0)))

    assert gap.safe.load == pytest.approx(3.0, rel=0.03)
    assert filled.safe.load == pytest.approx(ramp[-1], rel=0.03)


def test_slow_single_windows_make_no_knee():
    load = daily(10, 3.0)
    burst(load, 4, 7, 7.0)

    found = capacity(windows(load, shared(load, 8.0)))

    assert found.safe.load == pytest.approx(3.0, rel=0.03)
    assert found.knee is found.unconfirmed_knee is None


def test_a_gap_below_the_usual_loads_does_not_end_the_advice():
    load = daily(10, 3.0)
    load = np.where(load < 1.0, 0.01, load)

    found = capacity(windows(load, shared(load, 8.0)))

    assert found.safe.load == pytest.approx(3.0, rel=0.03)


def test_a_latency_that_differs_between_days_is_not_shown_to_be_low():
    load = daily(10, 3.0)
    factor = shared(load, 80.0)
    is_high, is_slow_day = load > 2.0, np.arange(len(load)) // MINUTES % 5 < 2
    factor[is_high & is_slow_day] = 5.0  # on four of ten days: the median is low

    found = capacity(windows(load, factor))

    assert found.knee is None
    assert found.safe.load == pytest.approx(2.0, rel=0.06)


def test_more_days_of_the_same_kind_change_the_advice_little():
    changes = []
    for seed in range(6):
        load, noise = varied(28, 3.0, seed)
        factor = shared(load, 80.0) * noise
        fewer, more = (
            capacity(windows(load[: days * MINUTES], factor[: days * MINUTES])) for days in (21, 28)
        )
        changes.append(more.safe.load / fewer.safe.load - 1)

    assert np.median(np.abs(changes)) < 0.05
    assert max(np.abs(changes)) < 0.15


def test_advice_stays_below_the_true_knee():
    beyond = 0
    for seed in range(12):
        power = np.random.default_rng(seed).uniform(4.0, 9.0)
        load, noise = varied(7 if seed % 2 else 14, 3.0, seed)
        load = np.minimum(load, 0.95 * power)

        found = capacity(windows(load, shared(load, power) * noise))

        beyond += found.safe.load > 1.02 * power / 2
        assert found.safe.load > 0.6 * min(3.0, power / 2)

    assert beyond <= 1  # 95 % intervals


def test_headroom_is_unknown_if_busy_hours_are_beyond_the_steady_loads():
    load = daily(10, 3.0)
    busy = np.arange(600, len(load), MINUTES)[:, None] + np.arange(120)
    load[busy] = np.where(busy % 2, 12.0, 1.0)  # never steady

    found = capacity(windows(load, shared(load, 20.0)))

    assert found.knee is None
    assert found.busy_load > found.safe.load
    assert found.headroom is None


def test_rare_loads_do_not_widen_the_bins_of_others():
    load = daily(10, 3.0)
    load[600:603] = 40.0  # steady, but less than 8 windows

    found = capacity(windows(load, shared(load, 80.0)))

    assert found.safe.load == pytest.approx(3.0, rel=0.03)
    assert found.curve["load"].max() == pytest.approx(3.0, rel=0.03)


@pytest.mark.parametrize(("days", "is_known"), [(1, False), (2, False), (3, True)])
def test_a_knee_needs_windows_of_several_days_beyond_it(days, is_known):
    load = daily(10, 3.0)
    for day in range(days):
        burst(load, day, 60, 5.0)

    found = capacity(windows(load, shared(load, 8.0)))

    knee = found.knee.value if is_known else found.unconfirmed_knee
    assert 3.0 < knee < 5.0
    assert (found.knee is not None) is is_known
    assert (found.unconfirmed_knee is None) is is_known
    assert found.slow.days == found.slow.units == days
    assert len(found.slow.load) == days * 58  # neighbours of the first and last differ
    assert found.safe.load == pytest.approx(3.0, rel=0.03)
    assert found.limit.high is None  # a third of the resampled sets do not have the one day


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
    else:  # a distinct load, so that its bins have no other windows
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
