"""The load ramp: concurrency, medians by concurrency and their intervals, recomputed otherwise."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ioportal.load.analysis.load_ramp import (
    MIN_VALUES,
    bin_edges,
    cells,
    concurrency,
    daily_correlation,
    ramp,
)
from tests.properties import examples

RUNS = st.lists(
    st.tuples(st.integers(0, 50), st.integers(0, 30), st.integers(1, 9)), min_size=1, max_size=25
)


@given(runs=RUNS, start=st.integers(-5, 60), length=st.integers(1, 40))
@settings(max_examples=examples(100))
def test_concurrency_is_the_mean_of_running_jobs_each_second(runs, start, length):
    starts, lengths, weights = np.array(runs, dtype=float).T
    level = concurrency(starts, starts + lengths, weights)

    [mean] = level.mean(np.array([start], dtype=float), np.array([start + length], dtype=float))

    running = [
        sum(weight for begin, run, weight in runs if begin <= second < begin + run)
        for second in range(start, start + length)
    ]
    assert mean == pytest.approx(sum(running) / length)


def test_an_empty_interval_and_no_jobs_have_no_concurrency():
    none = np.zeros(0)
    at_ten = np.array([10.0])

    assert np.isnan(concurrency(at_ten, at_ten + 5).mean(at_ten, at_ten)[0])
    assert concurrency(none, none).mean(at_ten, at_ten + 1).tolist() == [0]


PAIRS = st.lists(st.tuples(st.floats(0, 20), st.integers(0, 500)), min_size=1, max_size=300)


@given(pairs=PAIRS)
@settings(max_examples=examples(60), deadline=None)
def test_bins_hold_every_value_once_and_have_its_median(pairs):
    loads, values = np.array(pairs).T
    days = np.arange(loads.size) % 7

    related = ramp(loads, values, days)

    counts = [each.count for each in related.bins]
    assert sum(counts) == related.count == loads.size
    assert len(counts) == 1 or min(counts) >= MIN_VALUES
    assert all(left.high == right.low for left, right in pairwise(related.bins))
    last = related.bins[-1]
    for each in related.bins:
        inside = (loads >= each.low) & (
            (loads < each.high) | ((each is last) & (loads <= each.high))
        )
        assert each.median == np.median(values[inside])
        assert each.days == len(set(days[inside].tolist()))
        if each.band:
            assert each.band.low <= each.median <= each.band.high


def test_bins_are_equally_wide_unless_they_have_few_values():
    loads = np.repeat([0.0, 6.0, 12.0], [100, 5, 100])

    assert bin_edges(loads).tolist() == [0, 1, 12]


def campaign(seed, *, per_day=25, days=26, day_effect=0.2, effect=1.0):
    """Return a ramp from 5 to 15 slots: loads, values and days.

    A value is multiplied by `effect` from 5 to 15 slots; values of a day have a common factor.
    """
    chance = np.random.default_rng(seed)
    day = np.repeat(np.arange(days), per_day)
    slots = np.interp(np.arange(days), [0, 10, 14, days], [5, 5, 15, 15]).round()
    loads = slots[day] - chance.exponential(0.4, size=day.size)
    of_day = np.exp(chance.normal(0, day_effect, size=days))[day]
    values = of_day * chance.lognormal(8, 0.3, size=day.size) * effect ** ((loads - 5) / 10)
    return loads, values.round(), day


def test_an_interval_without_an_effect_contains_none():
    changes = [ramp(*campaign(seed)).change.effect for seed in range(40)]

    covered = np.mean([change.low <= 1 <= change.high for change in changes])
    assert covered >= 0.93 - 2 * np.sqrt(0.93 * 0.07 / 40)
    assert 1.2 < np.median([change.high / change.low for change in changes]) < 2.5  # not vacuous


def test_an_increase_with_the_load_is_seen():
    loads, values, days = campaign(1, day_effect=0.05, effect=1.5)

    change = ramp(loads, values, days).change

    low, high = np.quantile(loads, [0.25, 0.75])
    assert change.direction == 1
    assert change.is_ratio
    assert change.effect.value == pytest.approx(
        np.median(values[loads >= high]) / np.median(values[loads <= low])
    )
    assert change.effect.low < 1.5 < change.effect.high
    assert (change.first.concurrency, change.last.concurrency) == (
        np.median(loads[loads <= low]),
        np.median(loads[loads >= high]),
    )


def test_another_mix_of_jobs_is_no_effect_of_the_load():
    loads, values, days = campaign(4, day_effect=0.05)
    chance = np.random.default_rng(4)
    is_long = chance.random(loads.size) < np.interp(loads, [5, 15], [0.2, 0.8])
    longer = np.where(is_long, 3 * values, values)

    assert ramp(loads, longer, days).change.effect.low > 1.5
    change = ramp(loads, longer, days, is_long.astype(int)).change
    assert change.effect.low < 1 < change.effect.high
    assert change.effect.value == pytest.approx(1, abs=0.1)
    apart = ramp(loads, longer, days, (loads > 10).astype(int))
    assert (apart.change, apart.is_other_mix) == (None, True)


def test_medians_of_zero_are_compared_by_their_difference():
    loads, _, days = campaign(2)
    change = ramp(loads, (loads > 10).astype(float), days).change

    assert (change.is_ratio, change.effect.value, change.direction) == (False, 1, 1)


@pytest.mark.parametrize(
    ("loads", "days"),
    [
        pytest.param(np.full(100, 5.0), np.arange(100) % 10, id="a constant load"),
        pytest.param(np.zeros(100), np.arange(100) % 10, id="no load"),
        pytest.param(np.linspace(5, 15, 100), np.arange(100) // 25, id="four days"),
        pytest.param(np.linspace(5, 15, 100), np.arange(100) // 10, id="three days at either end"),
    ],
)
def test_little_data_permits_no_conclusion(loads, days):
    assert ramp(loads, np.linspace(1, 2, 100), days).change is None


def test_unknown_values_are_left_out():
    related = ramp(np.array([1.0, np.nan, 3.0]), np.array([np.nan, 2.0, 4.0]), np.arange(3))

    assert (related.count, [each.median for each in related.bins]) == (1, [4])
    assert ramp(np.zeros(0), np.zeros(0), np.zeros(0, dtype=int)).bins == ()


def test_the_correlation_is_that_of_daily_values():
    loads, values, days = campaign(3)
    daily = [(loads[days == day].mean(), np.median(values[days == day])) for day in np.unique(days)]

    rho = daily_correlation(loads, values, days)

    assert rho.value == pytest.approx(stats.spearmanr(*zip(*daily, strict=True)).statistic)
    ranks = [stats.rankdata(column) for column in zip(*daily, strict=True)]
    fisher = stats.pearsonr(*ranks).confidence_interval()  # slightly narrower
    assert rho.low == pytest.approx(fisher.low, abs=0.04)
    assert rho.high == pytest.approx(fisher.high, abs=0.04)


@given(pairs=PAIRS)
@settings(max_examples=examples(60))
def test_joined_points_stand_for_all_values(pairs):
    loads, values = np.array(pairs).T

    joined = cells(loads, values, across=5, high=4)

    drawn = values <= np.sort(values)[values.size - joined.above - 1]
    assert joined.counts.sum() + joined.above == loads.size
    assert joined.above <= 0.005 * loads.size + 1
    assert joined.counts.size <= 20
    assert joined.counts @ joined.loads == pytest.approx(loads[drawn].sum())
    assert joined.counts @ joined.values == pytest.approx(values[drawn].sum())
