"""Effects on medians: intervals by resampled days, and tests on daily medians."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special, stats

from ioportal.analysis.comparison.results import CONFIDENCE, POWER, Scale

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioportal.analysis.comparison.arms import Floats
    from ioportal.analysis.comparison.day_samples import DaySample

RESAMPLES = 1_000
_MAX_ZEROS = 0.01  # share of resampled medians at zero above which an effect is a difference
_SEED = 2016
_TAIL = (1 - CONFIDENCE) / 2
_NORMAL = float(special.ndtri(1 - _TAIL))


def resampled_days(days: int, seed: int = _SEED) -> Floats:
    """Return weights of days that stand for resampling (Bayesian bootstrap, Rubin 1981).

    Weights are independent and exponential, with mean 1. All arms use the weights of the same days:
    what a day has in common for two arms cancels in their comparison.

    Args:
        days: number of days of all arms together.
        seed: the same seed gives the same weights.

    Returns:
        Shape (RESAMPLES, days).
    """
    return np.random.default_rng(seed).exponential(size=(RESAMPLES, days))


@dataclass(frozen=True)
class Resampled:
    """One arm: its sample, and its median with each resampling of the days."""

    sample: DaySample
    median: float
    medians: Floats  # of the mid-distribution
    typical: float  # likewise, with equal weights of the days
    reached: Floats  # medians that are values of the sample

    def has_ratio(self) -> bool:
        """Whether the median is safely above zero."""
        zeros = np.count_nonzero(self.reached <= 0)
        return min(self.median, self.typical) > 0 and zeros <= _MAX_ZEROS * self.reached.size

    def deviations(self, scale: Scale) -> Floats:
        """Return the deviations of the resampled medians, corrected for the number of days.

        The variance of resampled means of D days is (D - 1) / (D + 1) times too small.
        """
        days = self.sample.effective_days
        correction = np.sqrt((days + 1) / (days - 1))
        if scale is Scale.DIFFERENCE:
            return correction * (self.medians - self.typical)
        return correction * (_logarithms(self.medians) - np.log(self.typical))

    def levels(self, scale: Scale) -> Floats:
        """Return the resampled medians that are values, or their logarithms."""
        return self.reached if scale is Scale.DIFFERENCE else _logarithms(self.reached)

    def level(self, scale: Scale) -> float:
        """Return the median, or its logarithm."""
        return self.median if scale is Scale.DIFFERENCE else float(np.log(self.median))

    def daily(self, scale: Scale) -> Floats:
        """Return the median of each day, or its logarithm; NaN: unknown, -inf: zero."""
        medians = self.sample.daily_medians
        if scale is Scale.DIFFERENCE:
            return medians
        with np.errstate(divide="ignore"):
            return np.log(medians)


def _logarithms(values: Floats) -> Floats:
    """Return logarithms; few zeros have that of the smallest other value."""
    return np.log(np.maximum(values, values[values > 0].min()))


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
class Contrast:
    """An estimate with its deviations and degrees of freedom, on a linear or logarithmic scale."""

    estimate: float
    deviations: Floats  # of the mid-distributions
    levels: Floats  # resampled estimates from values of the samples
    freedom: float

    @property
    def error(self) -> float:
        """Standard error."""
        return float(self.deviations.std())

    @property
    def interval(self) -> tuple[float, float]:
        """Bounds of the interval.

        Percentiles of the deviations are widened as Student's t requires. With many equal values, a
        median may jump to the next value: the percentiles of such medians are inside, too.
        """
        widening = _student(1 - _TAIL, self.freedom) / _NORMAL
        bounds = (_TAIL, 1 - _TAIL)
        low, high = (self.estimate + widening * np.quantile(self.deviations, bounds)).tolist()
        lowest, highest = np.quantile(self.levels, bounds).tolist()
        return min(low, lowest), max(high, highest)


def _student(share: float, freedom: float) -> float:
    return float(special.stdtrit(freedom, share))


def contrast(pairs: Sequence[tuple[Resampled, Resampled | None, int]], scale: Scale) -> Contrast:
    """Add and subtract medians of arms.

    Args:
        pairs: two arms on common days, of which the second is subtracted, or one arm (None); and
            the sign of the pair. Different pairs are independent.
        scale: ratios are differences of logarithms.

    Returns:
        The sum, with degrees of freedom by Welch and Satterthwaite over the pairs.
    """
    estimate, deviations, levels = 0.0, np.zeros(1), np.zeros(1)
    variances, freedoms = [], []
    for first, second, sign in pairs:
        part, values = first.deviations(scale), first.levels(scale)
        level = first.level(scale)
        days = first.sample.effective_days
        if second:
            part = part - second.deviations(scale)
            values = values - second.levels(scale)
            level -= second.level(scale)
            days = min(days, second.sample.effective_days)
        estimate += sign * level
        deviations = deviations + sign * part
        levels = levels + sign * values
        variances.append(part.var())
        freedoms.append(days - 1)
    total = sum(variances)
    shares = sum(v**2 / f for v, f in zip(variances, freedoms, strict=True))
    freedom = total**2 / shares if shares else min(freedoms)
    return Contrast(estimate, deviations, levels, float(freedom))


@dataclass(frozen=True)
class DayTest:
    """Result of a test on daily medians."""

    p: float
    error: float | None  # standard error of the difference; None: a test of ranks


def compare_days(first: Floats, second: Floats) -> DayTest:
    """Test whether daily figures of two independent arms differ: Welch's t test.

    Args:
        first: finite values, or -inf for the logarithm of zero; at least two.
        second: likewise.

    Returns:
        The p-value. With any logarithm of zero it is that of a Mann-Whitney test.
    """
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        return DayTest(float(stats.mannwhitneyu(first, second).pvalue), None)
    variances = [values.var(ddof=1) / values.size for values in (first, second)]
    freedoms = [first.size - 1, second.size - 1]
    return _t_test(float(first.mean() - second.mean()), variances, freedoms)


def compare_paired_days(differences: Floats) -> DayTest:
    """Test whether daily differences of two arms are zero: Student's t test.

    Args:
        differences: of the days that both arms have; at least two. If a figure is the logarithm of
            zero, its sign counts: a sign test.
    """
    if not np.isfinite(differences).all():
        signs = np.sign(np.nan_to_num(differences, nan=0.0))
        wins, changes = int((signs > 0).sum()), int((signs != 0).sum())
        return DayTest(float(stats.binomtest(wins, changes).pvalue) if changes else 1.0, None)
    variance = differences.var(ddof=1) / differences.size
    return _t_test(float(differences.mean()), [variance], [differences.size - 1])


def _t_test(difference: float, variances: Sequence[float], freedoms: Sequence[int]) -> DayTest:
    variance = float(sum(variances))
    if variance <= (1e-12 * difference) ** 2:
        return DayTest(1.0 if difference == 0 else 0.0, variance**0.5)
    freedom = variance**2 / sum(v**2 / f for v, f in zip(variances, freedoms, strict=True))
    error = variance**0.5
    return DayTest(float(2 * special.stdtr(freedom, -abs(difference) / error)), error)


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
