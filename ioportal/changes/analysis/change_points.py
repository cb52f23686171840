"""Change points: days from which the daily medians of a metric are at another level.

Daily medians are compared as logarithms, without their weekly cycle. Single outliers are clipped.
PELT (Killick, Fearnhead and Eckley 2012; the package ruptures) then divides the days into levels
with the least squares, at a penalty for each change.

The penalty is `_PENALTY` times log(days), in units of the variance of a day. It was chosen by
simulation (`tests.changes.analysis.test_change_points`): less than one false change point in
twenty quiet years. The variance and the correlation of neighbouring days follow from quantiles of
differences, so that a few changes do not affect them; for correlated days the penalty is larger.
Where jobs are of two kinds, the median of some days is in one kind and of others in the other:
the largest tenth of the differences shows this.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import scipy

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]

MIN_DAYS = 14  # with known medians
MIN_RATIO = 1.25  # between levels; smaller changes are of no interest
_PENALTY = 3.5
_MIN_LEVEL_DAYS = 2
_CLIPPED = 3.0  # standard deviations from the median of neighbouring days
_NEIGHBOURS = 5  # days
_SLOW = 15  # days: longer than the weekly cycle
_WEEK = 7
_MIN_WEEKS = 4
_MIN_DEVIATION = 0.02  # of logarithms, for days that hardly differ
_MAX_CORRELATION = 0.8
_MAD = 1.4826  # standard deviation / median absolute deviation of normal values
_LARGE = 0.9  # quantile of the differences of neighbouring days
_LARGE_DEVIATIONS = 1.6449  # that quantile of normal values, in standard deviations


@dataclass(frozen=True)
class ChangePoint:
    """A change between two levels of a metric.

    Args:
        position: index of the first day of the new level.
        before: median of the level before, in the unit of the metric.
        after: median of the new level.
    """

    position: int
    before: float
    after: float

    @property
    def ratio(self) -> float:
        """Return after / before."""
        return self.after / self.before


def change_points(days: Ints, medians: Floats) -> list[ChangePoint]:
    """Find the changes of level in daily medians.

    Args:
        days: shape (n,), ascending day numbers; days without known values are absent.
        medians: shape (n,), the median of each day, >= 0. Zeros count as half of the smallest
            positive median.

    Returns:
        Change points in order, none for fewer than `MIN_DAYS` days. Levels have at least two days
        and differ from their neighbours by at least `MIN_RATIO`.
    """
    positive = medians[medians > 0]
    if medians.size < MIN_DAYS or not positive.size:
        return []
    values = np.maximum(medians, positive.min() / 2)
    logs = _without_weekly_cycle(days, np.log(values))
    deviation, correlation = _noise(logs)
    usual = scipy.ndimage.median_filter(logs, _NEIGHBOURS, mode="nearest")
    limit = _CLIPPED * deviation
    scaled = (usual + np.clip(logs - usual, -limit, limit)) / deviation
    penalty = _PENALTY * np.log(scaled.size) * (1 + correlation) / (1 - correlation)
    import ruptures

    search = ruptures.KernelCPD(kernel="linear", min_size=_MIN_LEVEL_DAYS)
    edges = [0, *search.fit(scaled.reshape(-1, 1)).predict(pen=penalty)]
    return _large_changes(values, edges)


def _without_weekly_cycle(days: Ints, logs: Floats) -> Floats:
    """Subtract the median of each weekday's differences from the days around it."""
    residuals = logs - scipy.ndimage.median_filter(logs, _SLOW, mode="nearest")
    cycle = np.zeros(_WEEK)
    for weekday in range(_WEEK):
        of_weekday = residuals[days % _WEEK == weekday]
        if of_weekday.size >= _MIN_WEEKS:
            cycle[weekday] = np.median(of_weekday)
    without: Floats = logs - (cycle - cycle.mean())[days % _WEEK]
    return without


def _noise(logs: Floats) -> tuple[float, float]:
    """Return the standard deviation of a day, and the correlation of neighbouring days."""
    next_day, next_week = (
        _MAD * float(np.median(np.abs(logs[lag:] - logs[:-lag]))) / np.sqrt(2) for lag in (1, _WEEK)
    )
    deviation = max(next_week, _MIN_DEVIATION)
    correlation = float(np.clip(1 - (next_day / deviation) ** 2, 0, _MAX_CORRELATION))
    large = float(np.quantile(np.abs(np.diff(logs)), _LARGE)) / _LARGE_DEVIATIONS / np.sqrt(2)
    return max(deviation, large), correlation


def _large_changes(values: Floats, edges: list[int]) -> list[ChangePoint]:
    """Return the changes between levels; the smallest below `MIN_RATIO` are removed in turn."""
    while True:
        levels = [float(np.median(values[start:end])) for start, end in pairwise(edges)]
        changes = [
            ChangePoint(edge, before, after)
            for edge, (before, after) in zip(edges[1:-1], pairwise(levels), strict=True)
        ]
        smallest = min(changes, key=_size, default=None)
        if smallest is None or _size(smallest) >= np.log(MIN_RATIO):
            return changes
        edges.remove(smallest.position)


def _size(change: ChangePoint) -> float:
    return abs(float(np.log(change.ratio)))
