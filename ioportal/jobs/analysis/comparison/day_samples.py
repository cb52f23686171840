"""The values of a metric in an arm: sorted with weights, and as a histogram by day."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ioportal.jobs.analysis.comparison.arms import Floats, Ints

BINS = 256  # of a histogram by day
# Shares of the weight below each bin. Half of the bins are around the median, which is resampled.
_BELOW = np.interp(np.arange(BINS) / BINS, (0, 0.25, 0.75, 1), (0, 0.375, 0.625, 1))
_SAME = 1e-12  # relative differences of sums of weights below this are rounding errors


@dataclass(frozen=True)
class DaySample:
    """Known values of one metric in one arm, ascending, with their weights and days.

    Jobs without weight are omitted. `rows` are indexes of `days`, which are the days of the arm.
    """

    values: Floats
    weights: Floats
    rows: Ints
    days: Ints

    @property
    def size(self) -> int:
        """Number of values."""
        return int(self.values.size)

    @cached_property
    def weights_up_to(self) -> Floats:
        """Sum of the weights up to each value."""
        return self.weights.cumsum()

    @cached_property
    def day_weights(self) -> Floats:
        """Sum of the weights of each day."""
        return _sums(self.rows, self.weights, self.days.size)

    @cached_property
    def known_days(self) -> int:
        """Number of days with a value."""
        return int(np.count_nonzero(self.day_weights))

    @cached_property
    def effective_days(self) -> float:
        """Number of days with equal weights that are as informative (Kish); 0 without values."""
        squares = np.square(self.day_weights).sum()
        return float(self.day_weights.sum() ** 2 / squares) if squares else 0.0

    @property
    def effective_jobs(self) -> float:
        """Number of jobs with equal weights that are as informative (Kish); 0 without values."""
        squares = np.square(self.weights).sum()
        return float(self.weights.sum() ** 2 / squares) if squares else 0.0

    @property
    def mean(self) -> float:
        """Weighted mean."""
        return float(np.average(self.values, weights=self.weights))

    def quantiles(self, shares: Floats) -> Floats:
        """Return weighted quantiles, interpolated linearly (of equal weights, as in numpy).

        Value number k of n, with weight w and the sum C of the weights of the values before it, has
        the position (C + w (k - 1) / (n - 1)) / (sum of weights). Equal values have their mean
        weight, so that the order of the jobs does not matter.
        """
        if self.size == 1:
            return np.full(shares.size, self.values[0])
        weights = self._shared_weights
        after = weights.cumsum()
        position = after - weights * (1 - np.linspace(0, 1, self.size))
        quantiles: Floats = np.interp(shares * after[-1], position, self.values)
        return quantiles

    @property
    def _shared_weights(self) -> Floats:
        """The mean weight of the jobs with the same value, for each value."""
        starts = np.flatnonzero(np.diff(self.values, prepend=-np.inf))
        if starts.size == self.size:
            return self.weights
        counts = np.diff(starts, append=self.size)
        return np.repeat(np.add.reduceat(self.weights, starts) / counts, counts)

    @cached_property
    def _starts(self) -> Ints:
        """First index of each bin; equal values share a bin, and few values have one each.

        A value with the weight of several bins fills a bin alone.
        """
        if self.size <= BINS:
            return self.values.searchsorted(np.unique(self.values))
        after = self.weights_up_to
        lowest = self.values[
            after.searchsorted(after[-1] * _BELOW, "right").clip(max=self.size - 1)
        ]
        edges, bins = np.unique(lowest, return_counts=True)
        ends = self.values.searchsorted(edges[bins > 1], "right")
        return np.union1d(self.values.searchsorted(edges), ends[ends < self.size])

    @cached_property
    def _ends(self) -> Ints:
        """Index after each bin."""
        return np.append(self._starts[1:], self.size)

    @cached_property
    def _histogram(self) -> Floats:
        """Weights by day (row) and bin (column)."""
        bins = np.repeat(np.arange(self._starts.size), self._ends - self._starts)
        shape = self.days.size, self._starts.size
        cells = self.rows * shape[1] + bins
        return _sums(cells, self.weights, shape[0] * shape[1]).reshape(shape)

    @cached_property
    def daily_medians(self) -> Floats:
        """Weighted median of each day; NaN: no value. Exact up to 256 values, then to a bin."""
        lows = self.values[self._starts]
        highs = self.values[self._ends - 1]
        after = self._histogram.cumsum(axis=1)
        half = self.day_weights[:, None] / 2
        lower = (after < half * (1 - _SAME)).sum(axis=1).clip(max=lows.size - 1)
        upper = (after <= half * (1 + _SAME)).sum(axis=1).clip(max=lows.size - 1)
        each = np.arange(self.days.size)
        inside = self._histogram[each, lower]
        with np.errstate(divide="ignore", invalid="ignore"):
            part = (half[:, 0] - after[each, lower] + inside) / inside
            within = lows[lower] + part * (highs[lower] - lows[lower])
        medians = np.where(lower == upper, within, (highs[lower] + lows[upper]) / 2)
        return np.where(self.day_weights > 0, medians, np.nan)

    def resampled_medians(self, day_weights: Floats) -> tuple[Floats, Floats]:
        """Return the medians for each row of weights of days, in two forms.

        Args:
            day_weights: shape (k, days), factors of the weights of the days.

        Returns:
            Each of shape (k,). First, medians of the distribution that is linear between the
            middles of bins (mid-distribution), so that equal values do not hide the variation of
            the days. Second, the value of the bin at which half of the weight is reached.
        """
        values = self.values[(self._starts + self._ends) // 2]
        bins = values.size
        after = np.ascontiguousarray(self._histogram.cumsum(axis=1).T)
        middles = after - self._histogram.T / 2
        half = _weighted(day_weights, after[-1]) / 2
        # A binary search for all rows takes fewer operations than a product of matrices.
        below = np.zeros(half.size, int)  # number of bins whose middle is below the half
        for step in 1 << np.arange(bins.bit_length())[::-1]:
            last = np.minimum(below + step, bins) - 1
            is_below = (below + step <= bins) & (_weighted(day_weights, middles[last]) < half)
            below += step * is_below
        at = below.clip(min(1, bins - 1), bins - 1)
        before = np.maximum(at - 1, 0)
        low, high = (_weighted(day_weights, middles[ends]) for ends in (before, at))
        reached = np.where(_weighted(day_weights, after[before]) < half, at, before)
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.nan_to_num((half - low) / (high - low)).clip(0, 1)
        return values[before] + part * (values[at] - values[before]), values[reached]


def _weighted(day_weights: Floats, figures: Floats) -> Floats:
    """Return the sum of figures of days for each row of weights."""
    sums: Floats = np.einsum("...d,...d", day_weights, figures)
    return sums


def _sums(cells: Ints, weights: Floats, size: int) -> Floats:
    """Return the sum of the weights in each cell."""
    sums: Floats = np.bincount(cells, weights, size).astype(float, copy=False)
    return sums


def day_sample(values: Floats, weights: Floats, rows: Ints, days: Ints) -> DaySample:
    """Sort the known values with weight.

    Args:
        values: shape (n,), NaN: unknown.
        weights: shape (n,), 0: outside the comparison.
        rows: shape (n,), index of the day of each value in `days`.
        days: numbers of the days.
    """
    compared = np.flatnonzero(~np.isnan(values) & (weights > 0))
    order = compared[values[compared].argsort()]  # (NaN would make sorting five times slower)
    return DaySample(values[order], weights[order], rows[order], days)


def cliffs_delta(reference: DaySample, other: DaySample) -> float:
    """Return P(other > reference) - P(other < reference), weighted: 2 U / (n1 n2) - 1.

    Args:
        reference: values of the first arm; at least one.
        other: values of the other arm; at least one. U counts its wins, equal values by half.
    """
    after = np.concatenate([[0.0], reference.weights_up_to])
    below = after[reference.values.searchsorted(other.values, "left")]
    not_above = after[reference.values.searchsorted(other.values, "right")]
    return float(np.average((below + not_above) / after[-1] - 1, weights=other.weights))
