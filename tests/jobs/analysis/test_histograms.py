import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioportal.jobs.analysis.histograms import Histogram, Scale, histogram, linear_bins, log_bins

LARGEST = 2**63 - 1  # a bigint of the database
SCALES = st.sampled_from(Scale)
POPULATION = st.lists(
    st.one_of(st.integers(0, 30), st.integers(0, 10**7), st.integers(0, LARGEST)), max_size=60
)


def ascending(*values):
    return np.array(sorted(values), dtype=np.int64)


@given(st.lists(POPULATION, min_size=1, max_size=2), SCALES)
def test_every_value_is_in_exactly_one_bin(populations, scale):
    result = histogram([ascending(*values) for values in populations], scale)

    for values, counts in zip(populations, result.counts, strict=True):
        in_bins = [sum(low <= value < high for value in values) for low, high in result.bins]
        assert list(counts) == in_bins
        assert sum(counts) == len(values)


@given(POPULATION, SCALES)
def test_bins_ascend_without_overlap_and_are_limited_in_number(values, scale):
    bins = histogram([ascending(*values)], scale).bins

    assert all(low < high for low, high in bins)
    assert all(high <= low for (_, high), (low, _) in itertools.pairwise(bins))
    assert len(bins) <= (41 if scale is Scale.LINEAR else 101)


@given(st.integers(0, LARGEST), st.integers(0, LARGEST))
def test_linear_bins_have_one_round_width(first, second):
    bins = linear_bins(min(first, second), max(first, second))
    [width] = {high - low for low, high in bins}

    assert str(width).rstrip("0") in {"1", "2", "5"}
    assert all(low % width == 0 for low, _ in bins)


def test_log_bins_have_preferred_numbers_as_bounds():
    assert log_bins(1_368, 9_000) == (
        (1_250, 1_600),
        (1_600, 2_000),
        (2_000, 2_500),
        (2_500, 3_150),
        (3_150, 4_000),
        (4_000, 5_000),
        (5_000, 6_300),
        (6_300, 8_000),
        (8_000, 10_000),
    )


def test_many_decades_have_fewer_bins_each():
    bins = log_bins(10**3, 10**12)

    assert len([low for low, _ in bins if 10**6 <= low < 10**7]) == 5
    assert bins[0] == (1_000, 1_600)
    assert bins[-1] == (10**12, 16 * 10**11)


def test_bounds_of_small_counts_are_integers():
    assert log_bins(1, 12) == (
        (1, 2), (2, 3), (3, 4), (4, 5), (5, 7), (7, 8), (8, 10), (10, 13),
    )  # fmt: skip


def test_a_narrow_range_has_linear_bins_on_a_log_scale():
    assert log_bins(46, 49) == ((46, 47), (47, 48), (48, 49), (49, 50))
    assert log_bins(940_000, 1_020_000) == linear_bins(940_000, 1_020_000)
    assert log_bins(46, 49, narrowest=10) == ((40, 50),)


def test_zeros_have_a_separate_bin_on_a_log_scale():
    result = histogram([ascending(0, 0, 1_000)], Scale.LOG)

    assert result.bins == ((0, 1), (1_000, 1_001))
    assert result.counts == ((2, 1),)


def test_zeros_alone_have_one_bin():
    assert histogram([ascending(0, 0)], Scale.LOG) == Histogram(((0, 1),), ((2,),))
    assert histogram([ascending(0, 0)], Scale.LINEAR) == Histogram(((0, 1),), ((2,),))


def test_no_values_give_no_bins():
    assert histogram([ascending(), ascending()], Scale.LOG) == Histogram((), ((), ()))


def test_two_populations_have_common_bins():
    result = histogram([ascending(3, 8), ascending(0, 80)], Scale.LINEAR)

    assert result.bins[0] == (0, 5)
    assert result.bins[-1] == (80, 85)
    assert result.counts[0][:2] == (1, 1)
    assert result.counts[1][0] == result.counts[1][-1] == 1


def test_a_negative_count_is_rejected():
    with pytest.raises(ValueError, match="never negative"):
        histogram([ascending(-1, 5)], Scale.LOG)


def test_small_counts_of_other_users_jobs_are_hidden_and_others_rounded():
    result = Histogram(((0, 1), (1, 2), (2, 3), (3, 4)), ((1, 2, 3, 14), (9, 10, 0, 18)))

    assert result.anonymous(1).counts == ((1, 2, 3, 14), (None, 10, None, 20))
