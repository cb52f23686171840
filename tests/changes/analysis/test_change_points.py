"""Change points of simulated years with known changes.

A day's median varies by its own effect; weekends are lower, and a tenth of the days is missing.
"""

import numpy as np
import pytest

from ioportal.changes.analysis.change_points import change_points

YEAR = 365
YEARS = 60


def simulated(seed, sigma, changes=(), correlation=0.0):
    """Return days and medians of a year; `changes` are (day, factor) pairs."""
    rng = np.random.default_rng(seed)
    effects = rng.normal(0, 1, YEAR)
    for day in range(1, YEAR):
        effects[day] = correlation * effects[day - 1] + effects[day] * np.sqrt(1 - correlation**2)
    days = np.arange(YEAR)
    logs = np.log(2_000) + sigma * effects - 0.3 * (days % 7 >= 5)
    for day, factor in changes:
        logs[day:] += np.log(factor)
    known = rng.random(YEAR) > 0.1
    return days[known], np.exp(logs[known])


def found(seed, sigma, changes=(), correlation=0.0):
    """Return the day and the ratio of each change point."""
    days, medians = simulated(seed, sigma, changes, correlation)
    return [(days[point.position], point.ratio) for point in change_points(days, medians)]


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.5])
@pytest.mark.parametrize("sigma", [0.2, 0.4])
def test_quiet_years_have_hardly_any_change_point(sigma, correlation):
    counts = [len(found(seed, sigma, correlation=correlation)) for seed in range(YEARS)]

    assert max(counts) <= 1
    assert sum(counts) <= 0.05 * YEARS


@pytest.mark.parametrize(
    ("sigma", "factor", "share"),
    [
        pytest.param(0.2, 1 / 1.9, 0.9, id="1.9 times"),
        pytest.param(0.2, 1 / 4, 0.95, id="4 times"),
        pytest.param(0.2, 4, 0.95, id="4 times more"),
        pytest.param(0.4, 1 / 4, 0.9, id="4 times between days that differ much"),
        # A change of 1.6 standard deviations of a day has no sharper place.
        pytest.param(0.4, 1 / 1.9, 0.6, id="1.9 times between days that differ much"),
    ],
)
def test_a_change_is_found_within_a_day_and_its_size_is_measured(sigma, factor, share):
    points = [found(seed, sigma, [(180, factor)]) for seed in range(YEARS)]

    within_a_day = [any(abs(day - 180) <= 1 for day, _ in year) for year in points]
    assert sum(within_a_day) >= share * YEARS
    assert sum(len(year) == 1 for year in points) >= 0.95 * YEARS
    ratios = [ratio for year in points for _, ratio in year]
    assert np.median(ratios) == pytest.approx(factor, rel=0.05)


def test_two_changes_within_two_days_are_both_found_where_days_differ_little():
    changes = [(304, 1 / 1.9), (306, 1 / 2.1)]
    both = [found(seed, 0.1, changes) for seed in range(YEARS)]

    assert sum([day for day, _ in year] == [304, 306] for year in both) >= 0.7 * YEARS
    assert all(abs(day - 305) <= 2 for year in both for day, _ in year)


@pytest.mark.parametrize("deviation", [0.03, 0.08])
def test_days_whose_median_alternates_between_two_kinds_of_jobs_have_no_change_point(deviation):
    days, jobs = np.arange(YEAR), 60
    for seed in range(8):
        rng = np.random.default_rng(seed)
        share = np.clip(rng.normal(0.5, deviation, (YEAR, 1)), 0, 1)
        values = np.where(
            rng.random((YEAR, jobs)) < share,
            rng.lognormal(np.log(350), 0.05, (YEAR, jobs)),
            rng.lognormal(np.log(20), 2, (YEAR, jobs)),
        )

        assert change_points(days, np.median(values, axis=1)) == []


def test_outliers_are_no_change_points():
    days, medians = simulated(1, 0.2)
    medians[[40, 120, 250]] *= 20
    medians[300] = 0

    assert change_points(days, medians) == []


@pytest.mark.parametrize(
    "medians",
    [
        pytest.param([], id="no days"),
        pytest.param([5.0] * 7 + [50.0] * 6, id="too few days"),
        pytest.param([0.0] * 100, id="only zeros"),
        pytest.param([7.0] * 100, id="constant"),
        pytest.param([100.0] * 50 + [110.0] * 50, id="a change of a tenth"),
    ],
)
def test_there_are_none(medians):
    assert change_points(np.arange(len(medians)), np.array(medians)) == []


def test_a_change_from_nothing_is_found():
    [point] = change_points(np.arange(60), np.array([0.0] * 30 + [8.0] * 30))

    assert (point.position, point.after) == (30, 8.0)
