"""How much neighbouring days resemble each other, and how many independent days they are worth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioportal.jobs.analysis.comparison.arms import Floats, Ints

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
    # Of a series without gaps, the number of pairs is less than that of days by one.
    usual_pairs = days - len(residuals)
    observed = products / squares * usual_pairs / pairs
    mean_days = days / len(residuals)
    corrected = (mean_days * observed + 1) / max(mean_days - 4, mean_days / 2)
    return float(min(max(corrected, 0.0) ** _POWER, _HIGHEST))


def independent_days(days: float, rho: float) -> float:
    """Return how many independent days have a mean as certain as that of some correlated days.

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
