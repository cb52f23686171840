"""Scaling tests: a time by scale, with a fitted growth a + b n^c."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
import scipy

from ioportal.experiments.analysis.access_methods import mean_interval
from ioportal.jobs.analysis.comparison.results import CONFIDENCE

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy.typing as npt

    from ioportal.load.analysis.load_ramp import Interval

    Floats: TypeAlias = npt.NDArray[np.float64]
    Bools: TypeAlias = npt.NDArray[np.bool_]

MIN_SCALES = 3
MIN_SPAN = 2.0  # largest / smallest scale
OUTLYING = 4.0  # robust standard deviations of log values around the median of their scale
MIN_REPETITIONS = 3  # of a scale whose values can be outliers
_PARAMETERS = 3
_POINTS = 40  # of the curve
_EXPONENTS = np.linspace(0.02, 3.0, 299)
# Constant part / growing part at the largest scale.
_CONSTANTS = np.concatenate([[0.0], np.geomspace(1e-4, 1e3, 240)])
_MAD_TO_SIGMA = 1 / NormalDist().inv_cdf(0.75)
_NEGLIGIBLE = 0.02  # robust standard deviation of log values that is assumed at least
_SURE = 1 - CONFIDENCE


@dataclass(frozen=True)
class Level:
    """The values at one scale, outliers included; see `access_methods.mean_interval`."""

    scale: float
    count: int
    mean: Interval
    median: float


@dataclass(frozen=True)
class Growth:
    """The fit ``value = constant + factor x scale^exponent``, of values without outliers.

    `low` and `high` bound the 95 % interval of the exponent; None: no bound in the range of the
    search, 0 to 3.
    """

    constant: float
    factor: float
    exponent: float
    low: float | None
    high: float | None
    curve: tuple[Point, ...]

    @property
    def is_less_than_proportional(self) -> bool:
        """Whether the whole interval of the exponent is below 1."""
        return self.high is not None and self.high < 1

    @property
    def is_more_than_proportional(self) -> bool:
        """Whether the whole interval of the exponent is above 1."""
        return self.low is not None and self.low > 1


@dataclass(frozen=True)
class Point:
    """The fitted value at a scale, and its 95 % interval (of the mean, not of single values)."""

    scale: float
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Scaling:
    """A scaling test. `growth` is None if `refusal` states why there is no fit."""

    levels: tuple[Level, ...]
    outliers: tuple[int, ...]  # positions in the arguments
    growth: Growth | None
    refusal: str = ""


def scaling(scales: Floats, values: Floats) -> Scaling:
    """Summarise the values by scale and fit their growth.

    The fit minimises squared differences of logarithms, so every scale counts alike: times vary in
    proportion to their size. The interval of the exponent contains all exponents whose best fit has
    a sum of squares below ``best x (1 + F(0.95; 1, n - 3) / (n - 3))`` (profile likelihood).

    A value is an outlier if its logarithm is more than `OUTLYING` robust standard deviations from
    the median of its scale. All scales share one standard deviation: 1.4826 x the median
    of the absolute deviations, without the smallest deviation of each scale.

    Args:
        scales: shape (n,), above 0, such as numbers of nodes.
        values: shape (n,), above 0, such as seconds.

    Raises:
        ValueError: a scale or value is not above 0.

    Source: docs/experiments.md, "Scaling".
    """
    if scales.size and min(scales.min(), values.min()) <= 0:
        raise ValueError("Scales and values must be above 0.")
    is_outlier = outliers(scales, np.log(values))
    levels = tuple(
        Level(scale, own.size, mean, float(np.median(own)))
        for scale in np.unique(scales).tolist()
        if (mean := mean_interval(own := values[scales == scale]))
    )
    positions = tuple(np.flatnonzero(is_outlier).tolist())
    refusal = _refusal(scales[~is_outlier])
    if refusal:
        return Scaling(levels, positions, None, refusal)
    profile = _Profile(scales[~is_outlier], np.log(values[~is_outlier]))
    if not profile.grows:
        reason = "The values do not change with the scale more than their repetitions differ."
        return Scaling(levels, positions, None, reason)
    return Scaling(levels, positions, profile.growth())


def outliers(scales: Floats, logs: Floats) -> Bools:
    """Mark the outliers; see `scaling`.

    Args:
        scales: shape (n,).
        logs: shape (n,), logarithms of the values.
    """
    marked = np.zeros(logs.shape, bool)
    deviations = np.zeros(logs.shape)
    spread = []
    for scale in np.unique(scales):
        at = scales == scale
        deviations[at] = np.abs(logs[at] - np.median(logs[at]))
        if np.count_nonzero(at) >= MIN_REPETITIONS:
            marked |= at
            spread += np.sort(deviations[at])[1:].tolist()  # the median deviates least from itself
    if not spread:
        return marked
    sigma = max(_MAD_TO_SIGMA * float(np.median(spread)), _NEGLIGIBLE)
    return marked & (deviations > OUTLYING * sigma)


def _refusal(scales: Floats) -> str:
    distinct = np.unique(scales)
    if distinct.size < MIN_SCALES:
        return f"A fit needs at least {MIN_SCALES} scales; there are {distinct.size}."
    if distinct[-1] < MIN_SPAN * distinct[0]:
        return f"A fit needs scales that differ at least {MIN_SPAN:g}-fold."
    if scales.size <= _PARAMETERS:
        return "A fit needs more measurements than parameters (3): repeat the measurements."
    return ""


class _Profile:
    """Sums of squares of all fits on a grid of exponents and constant parts."""

    def __init__(self, scales: Floats, logs: Floats) -> None:
        levels, place, counts = np.unique(scales, return_inverse=True, return_counts=True)
        self._levels, self._means, self._counts = levels, np.bincount(place, logs) / counts, counts
        self._count = scales.size
        means = self._means
        weights = counts / counts.sum()
        repeated = float(((logs - means[place]) ** 2).sum())  # not explained by any fit
        shapes = self._shapes(levels)  # (exponents, constants, levels)
        differences = means - shapes
        self._offsets = differences @ weights  # best factor, as logarithm
        squares = (differences - self._offsets[..., None]) ** 2
        self.squares = repeated + counts.sum() * (squares @ weights)
        self._constant_squares = repeated + float((counts * (means - means @ weights) ** 2).sum())
        self._limit = self._squares_limit()

    def _shapes(self, scales: Floats) -> Floats:
        """Return log(constant part + growing part), the latter 1 at the largest scale."""
        relative = (scales / self._levels[-1])[None, None, :] ** _EXPONENTS[:, None, None]
        shapes: Floats = np.log(_CONSTANTS[None, :, None] + relative)
        return shapes

    def _squares_limit(self) -> float:
        freedom = self._count - _PARAMETERS
        allowed = scipy.stats.f.ppf(CONFIDENCE, 1, freedom) / freedom
        return float(self.squares.min() * (1 + allowed))

    @property
    def grows(self) -> bool:
        """Whether the fit is better than a constant value (F test)."""
        best, freedom = float(self.squares.min()), self._count - _PARAMETERS
        if best <= 0:
            return self._constant_squares > 0
        ratio = (self._constant_squares - best) / 2 / (best / freedom)
        return bool(scipy.stats.f.sf(ratio, 2, freedom) < _SURE)

    def growth(self) -> Growth:
        """Return the best fit with its intervals."""
        constant, factor, exponent = self._best()
        low, high = self._bounds(self.squares.min(axis=1))
        return Growth(
            constant, factor, exponent, low, high, self._curve(constant, factor, exponent)
        )

    def _best(self) -> tuple[float, float, float]:
        """Return constant, factor and exponent: the best ones of the grid, refined."""
        row, column = np.unravel_index(self.squares.argmin(), self.squares.shape)
        largest, scale = float(self._levels[-1]), float(np.exp(self._offsets[row, column]))

        def residuals(parameters: Floats) -> Floats:
            constant, growing, exponent = parameters
            values = constant + growing * (self._levels / largest) ** exponent
            weighted: Floats = np.sqrt(self._counts) * (np.log(values) - self._means)
            return weighted

        start = np.array([scale * _CONSTANTS[column], scale, _EXPONENTS[row]])
        bounds = ((0, scale / 10, _EXPONENTS[0] / 2), (np.inf, scale * 10, 2 * _EXPONENTS[-1]))
        found = scipy.optimize.least_squares(
            residuals, start, bounds=bounds, x_scale=(scale, scale, 1)
        )
        constant, growing, exponent = found.x.tolist()
        return constant, growing / largest**exponent, exponent

    def _bounds(self, profile: Floats) -> tuple[float | None, float | None]:
        inside = np.flatnonzero(profile <= self._limit)
        first, last = int(inside[0]), int(inside[-1])
        low = None if first == 0 else self._crossing(profile, first - 1)
        high = None if last == _EXPONENTS.size - 1 else self._crossing(profile, last)
        return low, high

    def _crossing(self, profile: Floats, at: int) -> float:
        """Return where the profile reaches the limit between two exponents of the grid."""
        left, right = profile[at], profile[at + 1]
        share = (self._limit - left) / (right - left) if right != left else 0.5
        return float(_EXPONENTS[at] + share * (_EXPONENTS[at + 1] - _EXPONENTS[at]))

    def _curve(self, constant: float, factor: float, exponent: float) -> tuple[Point, ...]:
        """Return the fit and the range of all fits within the limit."""
        slack = self._limit - self.squares
        is_inside = slack >= 0
        # The factor of a fit may differ as far as the sum of squares allows.
        spread = np.sqrt(slack[is_inside] / self._count)
        curve = []
        for scale in np.geomspace(self._levels[0], self._levels[-1], _POINTS).tolist():
            logs = (self._shapes(np.array([scale]))[..., 0] + self._offsets)[is_inside]
            low, high = np.exp([(logs - spread).min(), (logs + spread).max()]).tolist()
            value = constant + factor * scale**exponent
            curve.append(Point(scale, value, min(low, value), max(high, value)))
        return tuple(curve)
