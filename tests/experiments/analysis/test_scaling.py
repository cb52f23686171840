"""Scaling tests: levels, fitted growth, outliers."""

import numpy as np
import pytest
from scipy import optimize, stats

from ioportal.experiments.analysis.scaling import scaling

SCALES = np.repeat([1.0, 5.0, 150.0, 400.0, 800.0], 5)  # a copy of 4 GB to each node


def measured(rng, constant, factor, exponent, spread):
    return (constant + factor * SCALES**exponent) * rng.lognormal(0, spread, SCALES.size)


@pytest.mark.long
def test_the_interval_of_the_exponent_contains_the_truth_at_its_rate():
    rng = np.random.default_rng(1)
    inside = refused = 0
    for _ in range(120):
        growth = scaling(SCALES, measured(rng, 8, 0.35, 0.6, 0.06)).growth
        refused += growth is None
        inside += growth is not None and growth.low <= 0.6 <= growth.high

    assert refused == 0
    assert stats.binomtest(inside, 120, 0.95).pvalue > 0.01


def test_the_fit_is_the_one_of_a_general_optimiser():
    values = measured(np.random.default_rng(2), 8, 0.35, 0.6, 0.02)

    growth = scaling(SCALES, values).growth

    def curve(scales, constant, factor, exponent):
        return np.log(constant + factor * scales**exponent)

    bounds = ([1e-6, 1e-6, 0.02], [100, 100, 3])
    found, _ = optimize.curve_fit(curve, SCALES, np.log(values), (5, 0.5, 0.5), bounds=bounds)
    assert (growth.constant, growth.factor, growth.exponent) == pytest.approx(found, rel=1e-3)
    first, last = growth.curve[0], growth.curve[-1]
    assert first.low < first.value < first.high
    assert last.value == pytest.approx(values[-5:].mean(), rel=0.05)


def test_an_outlier_is_named_and_does_not_bend_the_fit():
    values = measured(np.random.default_rng(3), 8, 0.35, 0.6, 0.05)
    plain = scaling(SCALES, values)
    values[17] *= 3

    result = scaling(SCALES, values)

    assert set(result.outliers) == {*plain.outliers, 17}
    assert result.growth.exponent == pytest.approx(plain.growth.exponent, abs=0.05)


def test_means_have_students_interval():
    values = measured(np.random.default_rng(4), 8, 0.35, 0.6, 0.05)

    level = scaling(SCALES, values).levels[2]

    assert (level.scale, level.count) == (150, 5)
    expected = stats.ttest_1samp(values[10:15], 0).confidence_interval(0.95)
    assert (level.mean.low, level.mean.high) == pytest.approx(tuple(expected))


@pytest.mark.parametrize(
    ("scales", "values", "reason"),
    [
        pytest.param([1, 1, 5, 5], [1, 1.1, 2, 2.1], "at least 3 scales", id="two scales"),
        pytest.param([10, 11, 12, 13], [1, 2, 3, 4], "2-fold", id="a small range"),
        pytest.param([1, 10, 100], [1, 2, 3], "repeat", id="no repetitions"),
        pytest.param([1, 1, 9, 9, 99, 99], [5, 6, 6, 5, 5, 6], "do not change", id="constant"),
    ],
)
def test_a_fit_without_basis_is_refused(scales, values, reason):
    result = scaling(np.array(scales, float), np.array(values, float))

    assert result.growth is None
    assert reason in result.refusal
    assert len(result.levels) == len(set(scales))
