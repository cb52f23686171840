import math
import statistics
from collections import Counter
from decimal import ROUND_HALF_UP, Context, Decimal

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioportal.jobs.analysis.anonymity import (
    coarse,
    coarsened,
    hidden_steps,
    hidden_sums,
    in_anonymous_groups,
    shown,
    without_extremes,
)
from ioportal.jobs.analysis.spread import Spread, spread

NUMBERS = st.one_of(
    st.lists(st.integers(0, 2**53), min_size=2, max_size=200),
    st.lists(st.floats(0, 1e15), min_size=2, max_size=200),
)


def ascending(values):
    return np.sort(np.array(values))


def percentile(values, percent):
    """Interpolate linearly between the two nearest values."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    return low + (high - low) * (place - math.floor(place))


@given(NUMBERS)
def test_statistics_agree_with_the_standard_library(values):
    result = spread(ascending(values), unknown=3)

    assert (result.n, result.unknown) == (len(values), 3)
    assert (result.min, result.max) == (min(values), max(values))
    assert result.mean == pytest.approx(statistics.fmean(values))
    # The deviation of almost equal values has fewer than 16 digits, and tiny squares underflow.
    exact = statistics.stdev(values)
    assert result.std == pytest.approx(exact, rel=1e-9, abs=max(1e-14 * max(values), 1e-150))
    assert [result.p50, result.p90, result.p99] == pytest.approx(
        [percentile(values, percent) for percent in (50, 90, 99)]
    )


def test_the_deviation_has_a_divisor_of_n_minus_1():
    assert spread(np.array([1, 2, 3, 4]), 0).std == pytest.approx(1.2909944487)


def test_no_values_and_a_single_value_have_no_deviation():
    assert spread(np.array([]), unknown=7) == Spread(0, 7)
    assert spread(np.array([5]), 0) == Spread(1, 0, 5, 5, 5, None, 5, 5, 5)


@pytest.mark.parametrize(
    ("known", "percentiles"),
    [
        pytest.param(19, [], id="fewer than ten values on each side"),
        pytest.param(20, ["p50"], id="median of 20"),
        pytest.param(99, ["p50"], id="90 % of 99: nine values above"),
        pytest.param(100, ["p50", "p90"], id="90 % of 100"),
        pytest.param(1_000, ["p50", "p90", "p99"], id="99 % of 1,000"),
    ],
)
def test_percentiles_of_other_users_need_ten_values_on_each_side(known, percentiles):
    result = spread(np.arange(known), unknown=2).anonymous()

    assert (result.n, result.unknown) == (round(known, -1), 0)
    assert [
        name
        for name in ("min", "max", "mean", "std", "p50", "p90", "p99")
        if getattr(result, name) is not None
    ] == percentiles


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 15), st.sampled_from([1, 1, 1, 2, 3])),
        min_size=1,
        max_size=90,
    )
)
def test_groups_are_anonymous_with_ten_jobs_of_three_owners_none_dominant(rows):
    shown = in_anonymous_groups(*(np.array(column) for column in zip(*rows, strict=True)))

    for (group, _, _), is_shown in zip(rows, shown, strict=True):
        members = [(job, owner) for other, job, owner in rows if other == group]
        owners = Counter(owner for _, owner in members)
        assert is_shown == (
            len({job for job, _ in members}) >= 10
            and len(owners) >= 3
            and max(owners.values()) <= 0.85 * len(members)
        )


def test_extremes_of_other_users_are_removed():
    assert without_extremes(np.arange(20)).tolist() == [9, 10]
    assert without_extremes(np.arange(15)).tolist() == []
    assert without_extremes(np.arange(3)).tolist() == []


TWO_DIGITS = Context(prec=2, rounding=ROUND_HALF_UP)
INTEGERS = st.integers(-(2**63) + 1, 2**63 - 1)
FLOATS = st.one_of(st.just(0.0), st.floats(1e-30, 1e40), st.floats(-1e40, -1e-30))
FIGURES = st.one_of(st.lists(INTEGERS, min_size=1), st.lists(FLOATS, min_size=1))


def two_digits(value):
    """Round the decimal representation of a value."""
    return type(value)(TWO_DIGITS.create_decimal(repr(value)))


@given(FIGURES)
def test_rounding_is_exact_monotonic_and_idempotent(values):
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
        pytest.param(7_600_000, 7_600_000, id="two digits"),
        pytest.param(125, 130, id="half"),
        pytest.param(0.135, 0.14, id="half without an exact double"),
        pytest.param(2**63 - 1, 9_200_000_000_000_000_000, id="largest 64-bit integer"),
        pytest.param(2**64, 1.8e19, id="beyond 64 bits"),
        pytest.param(10**25 + 1, 1e25, id="far beyond 64 bits"),
    ],
)
def test_a_figure_is_rounded_to_two_digits(value, rounded):
    assert coarse(value) == rounded


@pytest.mark.parametrize(
    ("name", "value", "threshold", "expected"),
    [
        pytest.param("impact_s", 1_213.4, 1_210, 1_210, id="not below a threshold that it reached"),
        pytest.param("impact_s", 1_187.2, 1_190, 1_190, id="nor above one"),
        pytest.param("impact_share", 0.204, 0.2, 0.2, id="equal to a round threshold"),
        pytest.param("impact_s", 1_306.2, 10, 1_300, id="two digits"),
        pytest.param("opens", 1_306.0, 10, 1_306, id="own figures are exact"),
    ],
)
def test_a_figure_of_others_is_on_the_same_side_of_its_threshold(name, value, threshold, expected):
    assert shown(name, value, threshold) == expected


@pytest.mark.parametrize(
    ("parts", "is_hidden"),
    [
        ({"a": (4, 40), "b": (3, 30), "c": (3, 30)}, False),
        ({"a": (4, 85), "b": (3, 7), "c": (3, 8)}, False),
        ({"a": (4, 86), "b": (3, 7), "c": (3, 7)}, True),
        ({"a": (3, 40), "b": (3, 30), "c": (3, 30)}, True),  # nine jobs
        ({"a": (5, 50), "b": (5, 50)}, True),  # two owners
        ({"a": (4, 4), "b": (3, 3), "c": (3, 3), "host": (0, 90)}, True),  # one host dominates
        ({"a": (4, 40), "b": (6, 60), "host": (0, 90)}, True),  # a host owns no job
        ({"a": (4, 0), "b": (3, 0), "c": (3, 0)}, False),
    ],
)
def test_sums_hide_their_owners(parts, is_hidden):
    rows = [
        (1, owner, f"{owner}{n}" if jobs else None, amount / 2 / max(jobs, 1))
        for owner, (jobs, amount) in parts.items()
        for n in range(max(jobs, 1))
        for _ in range(2)
    ]
    others = [(2, owner, f"{owner}{n}", 1.0) for owner in "abc" for n in range(4)]
    columns = ["bin", "owner", "job", "amount"]

    hidden = hidden_sums(
        pl.DataFrame(rows + others, schema=columns, orient="row"), ["bin"], ["amount"]
    )

    assert dict(hidden.rows()) == {1: is_hidden, 2: False}


STEPS = ["block", "step", "owner", "job", "amount"]
JOBS = [f"{owner}{n}" for owner in "abc" for n in range(5)]


@pytest.mark.parametrize(
    ("storm", "others_hidden"),
    [
        pytest.param(2_000.0, True, id="the minute minus its other steps would be the storm"),
        pytest.param(0.0, False, id="nothing is hidden"),
    ],
)
def test_a_hidden_step_does_not_follow_from_the_minute(storm, others_hidden):
    steps = [(block, step) for block in (1, 2) for step in range(6)]
    rows = [(*each, job[0], job, 20.0) for each in steps for job in JOBS]
    rows.append((1, 0, "mallory", "m", storm))
    parts = pl.DataFrame(rows, schema=STEPS, orient="row")

    hidden = hidden_steps(parts, ["block", "step"], ["block"], ["amount"])

    shown = {(block, step): is_hidden for block, step, is_hidden in hidden.rows()}
    assert shown[1, 0] == (storm > 0)
    assert {shown[1, step] for step in range(1, 6)} == {others_hidden}
    assert {shown[2, step] for step in range(6)} == {False}


def test_a_job_in_several_hidden_steps_counts_once():
    """The block minus its visible step is the sum of three jobs in five steps."""
    rows = [(1, 0, job[0], job, 20.0) for job in JOBS]
    rows += [(1, step, owner, owner, 7.0) for step in range(1, 6) for owner in "def"]
    parts = pl.DataFrame(rows, schema=STEPS, orient="row")

    hidden = hidden_steps(parts, ["block", "step"], ["block"], ["amount"])

    assert hidden["amount"].to_list() == [True] * 6
