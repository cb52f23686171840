"""Histograms of counts and bytes: bins with round bounds, common to all populations.

Bins are half-open with integer bounds, so a query for the values of a bin returns exactly as many
values as its count.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ioportal.jobs.analysis.anonymity import DIGITS, MIN_GROUP, rounded_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ioportal.jobs.analysis.anonymity import Numbers

Bin: TypeAlias = tuple[int, int]  # [low, high)

ZERO: Bin = (0, 1)
_MAX_LINEAR = 40
_FEWEST_LOG = 8  # fewer bins of a log scale hide the shape of a narrow range
_FINE_DECADES = 4  # up to four decades have ten bins each, wider ranges five
# Renard's preferred numbers in hundredths: ten per decade, with a constant ratio within 1 %.
_PREFERRED = (100, 125, 160, 200, 250, 315, 400, 500, 630, 800)


class Scale(StrEnum):
    """Constant width of bins, or constant ratio of their bounds."""

    LINEAR = "linear"
    LOG = "log"


@dataclass(frozen=True)
class Histogram:
    """Counts of the values of each population by bin.

    `counts` has a row for each population; None: too few to show (`anonymous`).
    """

    bins: tuple[Bin, ...]
    counts: tuple[tuple[int | None, ...], ...]

    def anonymous(self, number: int) -> Histogram:
        """Return the histogram with one population's counts rounded, from `MIN_GROUP` on."""
        safe = tuple(
            rounded_count(count) if count and count >= MIN_GROUP else None
            for count in self.counts[number]
        )
        return replace(self, counts=(*self.counts[:number], safe, *self.counts[number + 1 :]))


def histogram(
    populations: Sequence[Numbers], scale: Scale, *, is_coarse: bool = False
) -> Histogram:
    """Count the values of populations in common bins.

    Args:
        populations: values of each population: non-negative integers in ascending order.
        scale: scale of the bins. On a log scale zeros have a separate bin.
        is_coarse: whether some values are rounded to two significant digits, which limits how
            narrow linear bins are.

    Returns:
        Bins in ascending order that contain every value of every population exactly once, without
        gaps between the lowest and the highest value. Without values, no bins.

    Raises:
        ValueError: a value is negative.
    """
    known = [values for values in populations if values.size]
    if any(values[0] < 0 for values in known):
        raise ValueError("Counts and bytes are never negative.")
    if not known:
        return Histogram((), ((),) * len(populations))
    highest = max(int(values[-1]) for values in known)
    narrowest = 10 ** max(0, len(str(highest)) - DIGITS) if is_coarse else 1
    if scale is Scale.LINEAR:
        bins = linear_bins(min(int(values[0]) for values in known), highest, narrowest)
    else:
        above_zero = [values[values.searchsorted(1)] for values in known if values[-1]]
        bins = (ZERO,) if any(values[0] == 0 for values in known) else ()
        bins += log_bins(int(min(above_zero)), highest, narrowest) if above_zero else ()
    return Histogram(bins, tuple(_counts(values, bins) for values in populations))


def linear_bins(low: int, high: int, narrowest: int = 1) -> tuple[Bin, ...]:
    """Return at most 40 bins of equal width from `low` to `high`, both included.

    The width is 1, 2 or 5 times a power of ten, and bounds are multiples of the width.
    """
    width = next(
        width
        for width in _round_widths()
        if width >= narrowest and high // width - low // width < _MAX_LINEAR
    )
    first = low // width * width
    return tuple((at, at + width) for at in range(first, high + 1, width))


def log_bins(low: int, high: int, narrowest: int = 1) -> tuple[Bin, ...]:
    """Return ten bins per decade, or five for many decades, from `low` to `high`.

    A range of less than a decade has linear bins instead, which differ little from logarithmic
    ones there and are narrower.

    Args:
        low: lowest value, at least 1.
        high: highest value, included; at least `low`.
        narrowest: minimum width of linear bins.

    Returns:
        Bins with preferred numbers (1, 1.6, 2.5, 4, 6.3, 10 and intermediate ones) times powers of
        ten as bounds, rounded up to integers below 100.
    """
    first_decade, last_decade = len(str(low)) - 1, len(str(high)) - 1
    step = 1 if last_decade - first_decade < _FINE_DECADES else 2
    bounds = sorted(
        {
            -(-preferred * 10**decade // 100)
            for decade in range(first_decade, last_decade + 2)
            for preferred in _PREFERRED[::step]
        }
    )
    bins = tuple((start, stop) for start, stop in pairwise(bounds) if start <= high and stop > low)
    return bins if len(bins) >= _FEWEST_LOG else linear_bins(low, high, narrowest)


def _round_widths() -> Iterator[int]:
    power = 1
    while True:
        yield from (power, 2 * power, 5 * power)
        power *= 10


def _counts(values: Numbers, bins: tuple[Bin, ...]) -> tuple[int, ...]:
    # Unsigned, because the upper bound of the largest bigint does not fit a bigint.
    lows, highs = np.array(bins, dtype=np.uint64).reshape(-1, 2).T
    unsigned = values.astype(np.uint64)
    return tuple(map(int, unsigned.searchsorted(highs) - unsigned.searchsorted(lows)))
