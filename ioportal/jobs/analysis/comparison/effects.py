"""Effects on medians: intervals by resampled days, and tests on daily medians."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from statistics import NormalDist
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import scipy

from ioportal.jobs.analysis.comparison.results import CONFIDENCE, MIN_DAYS, POWER, Scale

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ioportal.jobs.analysis.comparison.arms import Floats, Ints
    from ioportal.jobs.analysis.comparison.day_samples import DaySample

    _Figure = TypeVar("_Figure", float, Floats)

_HIGHEST = 0.9
_FEWEST = 2.0  # independent days
# The errors of daily medians of few jobs hide a part of the correlation. Chosen by simulation.
_POWER = 0.6


def correlation(series: Sequence[tuple[Ints, Floats]]) -> float:
    """Estimate the correlation of neighbouring days from some series of daily figures.

    In a series of n days, the correlation of the deviations from its own mean is too low by about
    (1 + 4 rho) / n (Kendall 1954): this is corrected. So is, roughly, the error of daily medians.

    Args:
        series: ascending day numbers and finite figures of each part of a comparison, whose levels
            may differ.

    Returns:
        From 0 to 0.9; 0 without neighbouring days, or if they do not vary.
    """
    residuals = [(days, figures - figures.mean()) for days, figures in series if days.size]
    squares = sum(float(np.square(each).sum()) for _, each in residuals)
    days = sum(each.size for each, _ in residuals)
    pairs, products = 0, 0.0
    for numbers, each in residuals:
        is_next = np.diff(numbers) == 1
        pairs += int(np.count_nonzero(is_next))
        products += float((each[1:] * each[:-1])[is_next].sum())
    if not pairs or not squares:
        return 0.0
    # A series without gaps has one pair fewer than days.
    usual_pairs = days - len(residuals)
    observed = products / squares * usual_pairs / pairs
    mean_days = days / len(residuals)
    corrected = (mean_days * observed + 1) / max(mean_days - 4, mean_days / 2)
    return float(min(max(corrected, 0.0) ** _POWER, _HIGHEST))


def independent_days(days: float, rho: float) -> float:
    """Return how many independent days give a mean as certain as some correlated days.

    Args:
        days: number of days, at least 1.
        rho: correlation of neighbouring days; of days k apart, it is ``rho ** k``.

    Returns:
        At most `days`, and at least 2 unless there are fewer.
    """
    apart = np.arange(1, int(np.ceil(days)))
    inflation = 1 + 2 * float(((1 - apart / days) * rho**apart).sum())
    return max(days / inflation, min(days, _FEWEST))


def widening(days: float, independent: float) -> float:
    """Return the factor of a variance that was estimated as if days were independent.

    The mean varies more, and the days vary less around it.
    """
    inflation = days / independent
    return inflation * (days - 1) / (days - inflation)


RESAMPLES = 1_000
_MAX_ZEROS = 0.01  # share of resampled medians at zero above which an effect is a difference
_SEED = 2016
_ROUNDING = 1e-12  # relative standard errors below this are rounding errors
_TAIL = (1 - CONFIDENCE) / 2
_PERMUTATIONS = 1_000  # 6 runs in each of two arms have fewer
_NORMAL = NormalDist().inv_cdf(1 - _TAIL)


def resampled_days(days: Ints) -> Floats:
    """Return weights of days that stand for resampling (Bayesian bootstrap, Rubin 1981).

    Weights are independent and exponential, with mean 1. All arms use the weights of the same days:
    what a day has in common for two arms cancels in their comparison. A day has the same weights in
    every comparison, so that an effect has the same interval with and without a control.

    Args:
        days: numbers of the days of all arms together, from 0.

    Returns:
        Shape (RESAMPLES, days).
    """
    weights = np.empty((RESAMPLES, days.size))
    for column, day in enumerate(days.astype(int).tolist()):
        weights[:, column] = np.random.default_rng((_SEED, day)).exponential(size=RESAMPLES)
    return weights


@dataclass(frozen=True)
class Resampled:
    """One arm: its sample, and its median with each resampling of the days."""

    sample: DaySample
    median: float
    medians: Floats  # of the mid-distribution
    typical: float  # of the mid-distribution, with equal weights of the days
    reached: Floats  # medians that are values of the sample

    def has_ratio(self) -> bool:
        """Whether the median is safely above zero."""
        zeros = np.count_nonzero(self.reached <= 0)
        return min(self.median, self.typical) > 0 and bool(zeros <= _MAX_ZEROS * self.reached.size)

    def deviations(self, scale: Scale) -> Floats:
        """Return the deviations of the resampled medians, corrected for the number of days.

        The variance of resampled means of D days is (D - 1) / (D + 1) times too small.
        """
        days = self.sample.effective_days
        correction = ((days + 1) / (days - 1)) ** 0.5
        deviations = self.medians - self.typical
        if scale is Scale.RATIO:
            deviations = _logarithms(self.medians) - np.log(self.typical)
        corrected: Floats = correction * deviations
        return corrected

    def levels(self, scale: Scale) -> Floats:
        """Return the resampled medians that are values, or their logarithms."""
        return self.reached if scale is Scale.DIFFERENCE else _logarithms(self.reached)

    def level(self, scale: Scale) -> float:
        """Return the median, or its logarithm."""
        return self.median if scale is Scale.DIFFERENCE else float(np.log(self.median))

    def daily(self, scale: Scale) -> tuple[Ints, Floats]:
        """Return days with values, and the median of each or its logarithm; of zero, -inf."""
        is_known = self.sample.day_weights > 0
        medians = self.sample.daily_medians[is_known]
        if scale is Scale.RATIO:
            with np.errstate(divide="ignore", invalid="ignore"):
                medians = np.log(medians)
        return self.sample.days[is_known], medians


def _logarithms(values: Floats) -> Floats:
    """Return logarithms; few zeros count as the smallest other value."""
    logarithms: Floats = np.log(np.maximum(values, values[values > 0].min()))
    return logarithms


def resample(sample: DaySample, median: float, day_weights: Floats) -> Resampled:
    """Compute the medians of a sample with resampled days.

    Args:
        sample: at least one value.
        median: its weighted median.
        day_weights: shape (k, days of the sample).
    """
    smooth, reached = sample.resampled_medians(np.vstack([np.ones(sample.days.size), day_weights]))
    return Resampled(sample, median, smooth[1:], float(smooth[0]), reached[1:])


@dataclass(frozen=True)
class Part:
    """An arm, or the difference of two arms on common days; `sign` is 1 or -1."""

    arm: Resampled
    subtracted: Resampled | None
    sign: int

    @property
    def days(self) -> float:
        """Number of days with equal weights that are as informative."""
        arms = [self.arm, self.subtracted] if self.subtracted else [self.arm]
        return min(arm.sample.effective_days for arm in arms)

    def difference(self, figure: Callable[[Resampled], _Figure]) -> _Figure:
        """Return the difference of a figure of both arms, with the sign."""
        own = figure(self.arm)
        return self.sign * (own - figure(self.subtracted) if self.subtracted else own)

    def daily(self, scale: Scale) -> tuple[Ints, Floats]:
        """Return days with their medians, or differences on common days, without unknown ones."""
        days, own = self.arm.daily(scale)
        if self.subtracted:
            others, subtracted = self.subtracted.daily(scale)
            days, at_own, at = np.intersect1d(days, others, assume_unique=True, return_indices=True)
            with np.errstate(invalid="ignore"):
                own = own[at_own] - subtracted[at]
        return days, self.sign * own

    def deviations(self, scale: Scale, correlation: float) -> Floats:
        """Return the deviations of the medians, wider if neighbouring days are correlated."""
        independent = independent_days(self.days, correlation)
        own = self.difference(lambda arm: arm.deviations(scale))
        widened: Floats = own * widening(self.days, independent) ** 0.5
        return widened


def difference(arm: Resampled, subtracted: Resampled, sign: int = 1) -> list[Part]:
    """Return the parts of a difference: one if at least half of all days are common, or two.

    With fewer common days, their differences would say little about the medians of all days.
    """
    days = [each.sample.days[each.sample.day_weights > 0] for each in (arm, subtracted)]
    common = np.intersect1d(days[0], days[1], assume_unique=True).size
    if common >= MIN_DAYS and 2 * common >= max(map(len, days)):
        return [Part(arm, subtracted, sign)]
    return [Part(arm, None, sign), Part(subtracted, None, -sign)]


def are_paired(parts: Sequence[Part]) -> bool:
    """Whether all parts are differences on common days."""
    return all(part.subtracted for part in parts)


@dataclass(frozen=True)
class Estimate:
    """A sum of parts, with its variation over resampled days, on a scale."""

    scale: Scale
    level: float  # a logarithm on the scale of ratios
    deviations: Floats  # of the mid-distributions
    levels: Floats  # resampled estimates from values of the samples
    freedom: float
    correlation: float  # of neighbouring days

    @property
    def value(self) -> float:
        """The ratio or difference."""
        return from_level(self.level, self.scale)

    @property
    def error(self) -> float:
        """Standard error of the level."""
        return float(self.deviations.std())

    @property
    def interval(self) -> tuple[float, float]:
        """Bounds of the interval of the value.

        Percentiles of the deviations are widened as Student's t requires. With many equal values, a
        median may jump to the next value: the percentiles of such medians are inside, too.
        """
        widening = _student(1 - _TAIL, self.freedom) / _NORMAL
        bounds = (_TAIL, 1 - _TAIL)
        low, high = (self.level + widening * np.quantile(self.deviations, bounds)).tolist()
        lowest, highest = np.quantile(self.levels, bounds).tolist()
        return (
            from_level(min(low, lowest), self.scale),
            from_level(max(high, highest), self.scale),
        )


def from_level(level: float, scale: Scale) -> float:
    """Return the ratio of a logarithm; a difference is its own level."""
    return float(np.exp(level)) if scale is Scale.RATIO else level


def estimate(parts: Sequence[Part], scale: Scale, *, are_runs: bool = False) -> Estimate:
    """Add parts, with degrees of freedom by Welch and Satterthwaite; runs are independent."""
    rho = 0.0 if are_runs else correlation([_known(*part.daily(scale)) for part in parts])
    deviations = [part.deviations(scale, rho) for part in parts]
    return Estimate(
        scale,
        float(sum(part.difference(lambda arm: arm.level(scale)) for part in parts)),
        np.sum(deviations, axis=0),
        np.sum([part.difference(lambda arm: arm.levels(scale)) for part in parts], axis=0),
        _freedom(
            [float(part.var()) for part in deviations],
            [independent_days(part.days, rho) - 1 for part in parts],
        ),
        rho,
    )


def _known(days: Ints, medians: Floats) -> tuple[Ints, Floats]:
    """Leave out the days without a logarithm."""
    is_known = np.isfinite(medians)
    return days[is_known], medians[is_known]


def _freedom(variances: Sequence[float], freedoms: Sequence[float]) -> float:
    shares = sum(v**2 / f for v, f in zip(variances, freedoms, strict=True))
    return sum(variances) ** 2 / shares if shares else min(freedoms)


def _student(share: float, freedom: float) -> float:
    return float(scipy.special.stdtrit(freedom, share))


@dataclass(frozen=True)
class TestResult:
    """Result of a test."""

    p: float
    error: float | None = None  # standard error of the level; None: a test of ranks


def daily_test(parts: Sequence[Part], result: Estimate) -> TestResult:
    """Test whether daily medians differ.

    Args:
        parts: of the estimate.
        result: the estimate.

    Returns:
        Welch's t test of the daily medians, or of their logarithms on the scale of ratios; with
        common days, of their daily differences; with correlated days, of as many independent days
        as they are worth. Where the median of a day is zero, logarithms are
        unknown: a t test of the estimate with its standard error over resampled days.
    """
    daily = [part.daily(result.scale)[1] for part in parts]
    if all(np.isfinite(values).all() for values in daily):
        independent = [independent_days(values.size, result.correlation) for values in daily]
        variances = [
            float(values.var(ddof=1)) / values.size * widening(values.size, days)
            for values, days in zip(daily, independent, strict=True)
        ]
        freedom = _freedom(variances, [days - 1 for days in independent])
        return _t_test(float(sum(values.mean() for values in daily)), sum(variances), freedom)
    return _t_test(result.level, result.error**2, result.freedom)


def _t_test(level: float, variance: float, freedom: float) -> TestResult:
    if variance <= (_ROUNDING * level) ** 2:
        return TestResult(0.0 if level else 1.0, 0.0)
    error = variance**0.5
    return TestResult(float(2 * scipy.special.stdtr(freedom, -abs(level) / error)), error)


def run_test(first: DaySample, other: DaySample) -> TestResult:
    """Test whether the values of independent runs differ: Mann-Whitney, exact for few runs."""
    values = np.concatenate([first.values, other.values])
    has_ties = np.unique(values).size < values.size  # scipy's exact test ignores them
    is_small = comb(values.size, first.values.size) <= _PERMUTATIONS
    if has_ties and is_small:
        exact = scipy.stats.PermutationMethod(_PERMUTATIONS)
        return TestResult(
            float(scipy.stats.mannwhitneyu(first.values, other.values, method=exact).pvalue)
        )
    return TestResult(float(scipy.stats.mannwhitneyu(first.values, other.values).pvalue))


def smallest_effect(error: float, freedom: float, tests: int) -> float:
    """Return the smallest effect that is detected with a probability of `POWER`.

    Args:
        error: standard error of the effect.
        freedom: degrees of freedom.
        tests: number of tests of the comparison, among which this one is corrected.
    """
    significance = (1 - CONFIDENCE) / 2 / tests
    return error * (_student(1 - significance, freedom) + _student(POWER, freedom))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for several tests (Holm 1979)."""
    order = np.argsort(p_values)
    scaled = np.array(p_values)[order] * np.arange(len(p_values), 0, -1)
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1)
    return [float(p) for p in adjusted]
