"""Concurrency of jobs against their run time, their copy latency or a server's latency.

Jobs of one day resemble each other, so intervals are computed by resampling days.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import scipy

from ioportal.jobs.analysis.comparison.arms import Arm
from ioportal.jobs.analysis.comparison.comparing import compare
from ioportal.jobs.analysis.comparison.results import CONFIDENCE, MIN_DAYS, Refusal, Scale

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy.typing as npt

    Floats: TypeAlias = npt.NDArray[np.float64]
    Ints: TypeAlias = npt.NDArray[np.int64]

MAX_BINS = 12  # of the concurrency
MIN_VALUES = 30  # of a bin; smaller ones are joined with the next
MIN_BAND_DAYS = 3
MIN_RANGE = 1.25  # highest / lowest concurrency of a change
_RESAMPLES = 400
_DIGITS = 3  # significant digits of values whose medians are resampled
_SEED = 18
_OUTLYING = 99.5  # percentile of the highest value in a scatter plot
_QUARTER = 0.25
_VALUE = "value"
_EDGE = (1 + CONFIDENCE) / 2


@dataclass(frozen=True)
class Concurrency:
    """The number of running jobs over time, or the sum of their weights.

    `levels[i]` applies from `times[i]` (ascending, in s) to the next time; before the first and
    after the last time it is 0.
    """

    times: Floats
    levels: Floats

    @cached_property
    def _integrals(self) -> Floats:
        """The integral from the first time to each time."""
        return np.concatenate([[0.0], np.cumsum(self.levels[:-1] * np.diff(self.times))])

    def _integral(self, moments: Floats) -> Floats:
        if not self.times.size:
            return np.zeros_like(moments)
        number = np.searchsorted(self.times, moments, side="right") - 1
        known = np.maximum(number, 0)
        return np.where(
            number < 0,
            0.0,
            self._integrals[known] + self.levels[known] * (moments - self.times[known]),
        )

    def mean(self, starts: Floats, ends: Floats) -> Floats:
        """Return the mean over time in each interval [start, end); NaN in empty intervals."""
        seconds = np.where(ends > starts, ends - starts, np.nan)
        return (self._integral(ends) - self._integral(starts)) / seconds


def concurrency(starts: Floats, ends: Floats, weights: Floats | None = None) -> Concurrency:
    """Count the running jobs.

    Args:
        starts: shape (n,), in s.
        ends: shape (n,); intervals that end at their start, or before it, are not counted.
        weights: shape (n,), such as nodes; None: each job counts as 1.
    """
    runs = ends > starts
    each = np.ones(starts.shape) if weights is None else weights
    moments = np.concatenate([starts[runs], ends[runs]])
    times, place = np.unique(moments, return_inverse=True)
    changes = np.concatenate([each[runs], -each[runs]])
    return Concurrency(times, np.cumsum(np.bincount(place, changes, minlength=times.size)))


@dataclass(frozen=True)
class Interval:
    """A value and its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Bin:
    """Values in a range of the concurrency, [low, high); the last bin includes `high`."""

    low: float
    high: float
    concurrency: float  # median
    count: int
    days: int
    median: float
    band: Interval | None  # of the median; None: too few days


@dataclass(frozen=True)
class End:
    """The quarter of values at the lowest or at the highest load: medians of loads and values."""

    concurrency: float
    median: float


@dataclass(frozen=True)
class Change:
    """The medians of the quarter of values at the highest load and of that at the lowest, compared.

    Medians are weighted to the same mix of strata. `effect` is their ratio, or their difference
    where a median may be zero.
    """

    first: End
    last: End
    is_ratio: bool
    effect: Interval

    @property
    def direction(self) -> int:
        """1: the median increased, -1: it decreased, 0: no change is visible."""
        none = 1.0 if self.is_ratio else 0.0
        return (self.effect.low > none) - (self.effect.high < none)


@dataclass(frozen=True)
class Ramp:
    """The relation between concurrency and a metric.

    `change` is None if the concurrency hardly varies, with too few days at one end, or if the jobs
    at both ends have hardly a stratum in common (`is_other_mix`). `correlation` is Spearman's, of
    daily values; None with too few days or without any variation.
    """

    count: int
    days: int
    bins: tuple[Bin, ...]
    change: Change | None
    correlation: Interval | None
    is_other_mix: bool = False


def ramp(loads: Floats, values: Floats, days: Ints, strata: Ints | None = None) -> Ramp:
    """Relate the values of jobs, or of intervals, to the concurrency at their time.

    Bins have equal widths; those with fewer than `MIN_VALUES` values are joined. Intervals are
    Student's, with the standard error over resampled days and the number of days - 1, of logarithms
    if all medians are positive.

    Args:
        loads: concurrency, shape (n,); NaN: unknown.
        values: values of a metric, at least 0; NaN: unknown.
        days: number of the day of each.
        strata: equal numbers for jobs of one kind; None: all are. The change from low to high
            load compares jobs of the same mix of kinds (`comparison.compare`).

    Returns:
        A relation of the n known pairs; without any, it has no bins.
    """
    known = np.isfinite(loads) & np.isfinite(values)
    kinds = np.zeros(loads.size, int) if strata is None else strata
    loads, values, kinds = loads[known], values[known], kinds[known]
    numbers, days = np.unique(days[known], return_inverse=True)
    if not loads.size:
        return Ramp(0, 0, (), None, None)
    change, refusal = _change(loads, values, numbers[days], kinds)
    weights = _day_weights(numbers.size)
    edges = bin_edges(loads)
    places = np.clip(np.searchsorted(edges, loads, side="right") - 1, 0, edges.size - 2)
    groups = [
        (_Group(loads[inside], values[inside], days[inside], weights), low, high)
        for number, (low, high) in enumerate(pairwise(edges.tolist()))
        for inside in (places == number,)
    ]
    return Ramp(
        loads.size,
        numbers.size,
        tuple(group.bin(low, high) for group, low, high in groups),
        change,
        daily_correlation(loads, values, days),
        is_other_mix=refusal in {Refusal.NO_SHARED_STRATUM, Refusal.FEW_MATCHED},
    )


def bin_edges(loads: Floats) -> Floats:
    """Return the bounds of bins of equal widths, each with at least `MIN_VALUES` values if any."""
    low, high = loads.min(), loads.max()
    if low == high:
        return np.array([low, high])
    counts, edges = np.histogram(loads, MAX_BINS, (low, high))
    bounds, inside = [low], 0
    for number, count in enumerate(counts):
        inside += count
        if inside >= MIN_VALUES:
            bounds.append(edges[number + 1])
            inside = 0
    if inside and len(bounds) > 1:
        bounds.pop()
    bounds = [*bounds, high] if bounds[-1] < high else bounds
    return np.array(bounds, dtype=float)


class _Group:
    """Values of a range of the concurrency, and their median in each resample of the days."""

    def __init__(self, loads: Floats, values: Floats, days: Ints, weights: Floats) -> None:
        self.loads = loads
        self.values = values
        self.days = np.unique(days).size
        self.median = float(np.median(values))
        self.resampled = _medians(values, days, weights)

    def bin(self, low: float, high: float) -> Bin:
        """Return the figures of the group."""
        return Bin(
            low,
            high,
            float(np.median(self.loads)),
            self.values.size,
            self.days,
            self.median,
            student_interval(self.median, self.resampled, self.days)
            if self.days >= MIN_BAND_DAYS
            else None,
        )


def _change(
    loads: Floats, values: Floats, days: Ints, strata: Ints
) -> tuple[Change | None, Refusal | None]:
    """Return the change from the lowest to the highest load; without one, why."""
    low, high = np.quantile(loads, (_QUARTER, 1 - _QUARTER)).tolist()
    ends = [loads <= low, loads >= high]
    concurrency = [float(np.median(loads[end])) for end in ends]
    if concurrency[1] <= MIN_RANGE * concurrency[0]:
        return None, None
    arms = [
        Arm({_VALUE: values[end]}, days[end], np.zeros(end.sum(), int), strata[end]) for end in ends
    ]
    row = compare(arms, [_VALUE]).metrics[_VALUE]
    [effect] = row.effects
    if effect.estimate is None or effect.low is None or effect.high is None:
        return None, effect.refusal
    first, last = (
        End(level, arm.median or 0.0) for level, arm in zip(concurrency, row.arms, strict=True)
    )
    interval = Interval(effect.estimate, effect.low, effect.high)
    return Change(first, last, effect.scale is Scale.RATIO, interval), None


def student_interval(value: float, resampled: Floats, days: int) -> Interval:
    """Return Student's interval of a value; of its logarithm where all values are positive.

    Args:
        value: value of the sample.
        resampled: its values in resamples of the days; NaN where none of its days occurs.
        days: number of days of the sample, 2 at least; or of other units that are resampled.
    """
    known = resampled[np.isfinite(resampled)]
    # Resampling n days gives the deviation of a sample, which is smaller by this factor.
    wide = scipy.stats.t.ppf(_EDGE, days - 1) * np.sqrt(days / (days - 1))
    if value > 0 and known.min() > 0:
        factor = float(np.exp(wide * np.log(known).std()))
        return Interval(value, value / factor, value * factor)
    error = float(wide * known.std())
    return Interval(value, value - error, value + error)


def _day_weights(days: int) -> Floats:
    """Return how often each day occurs in each resample: shape (resamples, days)."""
    generator = np.random.default_rng(_SEED)
    return generator.multinomial(days, np.full(days, 1 / days), size=_RESAMPLES).astype(float)


def _medians(values: Floats, days: Ints, weights: Floats) -> Floats:
    """Return the median of the values in each resample; NaN where none of their days occurs."""
    levels, place = np.unique(_rounded(values), return_inverse=True)
    present, day = np.unique(days, return_inverse=True)
    counts = np.zeros((present.size, levels.size))
    np.add.at(counts, (day, place), 1)
    below = (weights[:, present] @ counts).cumsum(axis=1)
    totals = below[:, -1:]
    medians: Floats = levels[(2 * below >= totals).argmax(axis=1)]
    return np.where(totals[:, 0] > 0, medians, np.nan)


def _rounded(values: Floats) -> Floats:
    """Return the values with a few significant digits: memory does not grow with their number."""
    sizes = np.floor(np.log10(np.where(values > 0, values, 1.0)))
    units = 10.0 ** (sizes - _DIGITS + 1)
    return np.round(values / units) * units


def daily_correlation(loads: Floats, values: Floats, days: Ints) -> Interval | None:
    """Return Spearman's correlation between the daily mean of loads and the daily median of values.

    The interval follows Bonett and Wright (2000).
    """
    _, day = np.unique(days, return_inverse=True)
    order = np.lexsort((values, day))
    counts = np.bincount(day)
    if counts.size < MIN_DAYS:
        return None
    means = np.bincount(day, loads) / counts
    medians = np.array(
        [np.median(part) for part in np.split(values[order], np.cumsum(counts)[:-1])]
    )
    if np.ptp(means) == 0 or np.ptp(medians) == 0:
        return None
    rho = float(scipy.stats.spearmanr(means, medians).statistic)
    inside = min(max(rho, -1 + 1e-9), 1 - 1e-9)
    wide = scipy.stats.norm.ppf(_EDGE) * np.sqrt((1 + inside**2 / 2) / (counts.size - 3))
    low, high = np.tanh(np.arctanh(inside) + np.array([-wide, wide])).tolist()
    return Interval(rho, low, high)


@dataclass(frozen=True)
class Cells:
    """Joined neighbours of a scatter plot: mean position and number of points of each."""

    loads: Floats
    values: Floats
    counts: Ints
    above: int  # points beyond the highest value


def cells(loads: Floats, values: Floats, across: int = 48, high: int = 32) -> Cells:
    """Join the points of a scatter plot on a grid of at most `across` x `high` cells.

    The highest 0.5 % of the values are only counted: they would compress all others.
    """
    known = np.isfinite(loads) & np.isfinite(values)
    loads, values = loads[known], values[known]
    if not loads.size:
        return Cells(loads, values, np.zeros(0, dtype=np.int64), 0)
    inside = values <= np.percentile(values, _OUTLYING, method="higher")
    loads, values = loads[inside], values[inside]
    cell = _slot(loads, across) * high + _slot(values, high)
    _, place, counts = np.unique(cell, return_inverse=True, return_counts=True)
    return Cells(
        np.bincount(place, loads) / counts,
        np.bincount(place, values) / counts,
        counts,
        int((~inside).sum()),
    )


def _slot(values: Floats, number: int) -> Ints:
    """Return the number of the slot of each value, of `number` equal ones."""
    width = np.ptp(values) / number or 1.0
    slots: Ints = np.minimum((values - values.min()) // width, number - 1).astype(np.int64)
    return slots
