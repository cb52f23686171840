import math
import statistics
from decimal import ROUND_HALF_UP, Context, Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioportal.analysis.populations import Spread, coarse, coarsened, spread, without_extremes

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


TWO_DIGITS = Context(prec=2, rounding=ROUND_HALF_UP)
INTEGERS = st.integers(-(2**63) + 1, 2**63 - 1)
FLOATS = st.one_of(st.just(0.0), st.floats(1e-30, 1e40), st.floats(-1e40, -1e-30))
FIGURES = st.one_of(st.lists(INTEGERS, min_size=1), st.lists(FLOATS, min_size=1))


def two_digits(value):
    """By hand: of the decimal number that stands for the value."""
    return type(value)(TWO_DIGITS.create_decimal(repr(value)))


@given(FIGURES)
def test_figures_of_others_have_two_digits_wherever_they_are_rounded(values):
    values.sort()

    rounded = coarsened(np.array(values)).tolist()

    assert rounded == [two_digits(value) for value in values]
    assert rounded == [coarse(value) for value in values]
    assert rounded == sorted(rounded)
    assert coarsened(np.array(rounded)).tolist() == rounded
    for before, after in zip(values, rounded, strict=True):
        error = abs(Decimal(after) - Decimal(before))
        assert error <= Decimal("0.05000001") * abs(Decimal(before))


@given(st.integers(10, 99), st.integers(-30, 38))
def test_a_figure_of_two_digits_is_not_rounded(digits, exponent):
    value = float(f"{digits}e{exponent}")

    assert coarsened(np.array([value])).tolist() == [value]
    if 0 <= exponent <= 16:
        assert coarsened(np.array([digits * 10**exponent])).tolist() == [digits * 10**exponent]


@pytest.mark.parametrize(
    ("value", "rounded"),
    [
        pytest.param(7_600_000, 7_600_000, id="a fixed point"),
        pytest.param(125, 130, id="a half"),
        pytest.param(0.135, 0.14, id="a half that no double is"),
        pytest.param(2**63 - 1, 9_200_000_000_000_000_000, id="the greatest of 64 bits"),
        pytest.param(2**64, 1.8e19, id="a sum beyond 64 bits"),
        pytest.param(10**25 + 1, 1e25, id="a sum far beyond 64 bits"),
    ],
)
def test_single_figures_of_others_have_two_digits(value, rounded):
    assert coarse(value) == rounded
