import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioportal.analysis.populations import Spread, spread, without_extremes

NUMBERS = st.one_of(
    st.lists(st.integers(0, 2**53), min_size=2, max_size=200),
    st.lists(st.floats(0, 1e15), min_size=2, max_size=200),
)


def ascending(values):
    return np.sort(np.array(values))


def percentile(values, percent):
    """By hand: between the two nearest values, in proportion."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    return low + (high - low) * (place - math.floor(place))


@given(NUMBERS)
def test_figures_agree_with_those_of_another_program(values):
    found = spread(ascending(values), unknown=3)

    assert (found.n, found.unknown) == (len(values), 3)
    assert (found.min, found.max) == (min(values), max(values))
    assert found.mean == pytest.approx(statistics.fmean(values))
    # Doubles have 16 digits: of values that hardly differ the deviation has fewer. And the square
    # of what is next to nothing is nothing.
    exact = statistics.stdev(values)
    assert found.std == pytest.approx(exact, rel=1e-9, abs=max(1e-14 * max(values), 1e-150))
    assert [found.p50, found.p90, found.p99] == pytest.approx(
        [percentile(values, percent) for percent in (50, 90, 99)]
    )


def test_the_deviation_is_that_of_a_sample():
    assert spread(np.array([1, 2, 3, 4]), 0).std == pytest.approx(1.2909944487)


def test_nothing_known_is_nothing_and_one_value_does_not_deviate():
    assert spread(np.array([]), unknown=7) == Spread(0, 7)
    assert spread(np.array([5]), 0) == Spread(1, 0, 5, 5, 5, None, 5, 5, 5)


@pytest.mark.parametrize(
    ("known", "told"),
    [
        pytest.param(19, [], id="nothing of fewer than ten on each side"),
        pytest.param(20, ["p50"], id="the median of twenty"),
        pytest.param(99, ["p50"], id="not the tenth highest of ninety-nine"),
        pytest.param(100, ["p50", "p90"], id="90 % of a hundred"),
        pytest.param(1_000, ["p50", "p90", "p99"], id="99 % of a thousand"),
    ],
)
def test_of_other_people_only_what_stands_for_ten_values_is_told(known, told):
    found = spread(np.arange(known), unknown=2).anonymous()

    assert (found.n, found.unknown) == (known, 2)
    assert [
        name
        for name in ("min", "max", "mean", "std", "p50", "p90", "p99")
        if getattr(found, name) is not None
    ] == told


def test_extremes_of_other_people_stay_unseen():
    assert without_extremes(np.arange(20)).tolist() == [9, 10]
    assert without_extremes(np.arange(15)).tolist() == []
    assert without_extremes(np.arange(3)).tolist() == []
