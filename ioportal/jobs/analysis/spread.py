"""Distribution of a metric in a population: one column of the statistics table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ioportal.jobs.analysis.anonymity import MIN_GROUP, coarse, rounded_count

if TYPE_CHECKING:
    from ioportal.jobs.analysis.anonymity import Numbers

_PERCENTILES = {"p50": 50, "p90": 90, "p99": 99}


@dataclass(frozen=True)
class Spread:
    """Statistics of a metric's known values; None: too few values, or hidden.

    `std` is the standard deviation of a sample, with a divisor of n - 1.
    """

    n: int
    unknown: int
    min: float | None = None
    max: float | None = None
    mean: float | None = None
    std: float | None = None
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None

    def anonymous(self) -> Spread:
        """Return the statistics that do not reveal values of other users' single jobs.

        Minimum and maximum are values of single jobs, and percentiles with fewer than ten values on
        one side are close to them. If two populations differ by one job, the difference of their
        means reveals its value. The values must be `coarsened`.
        """
        percentiles = {
            name: coarse(getattr(self, name))
            for name, percent in _PERCENTILES.items()
            if self.n * min(percent, 100 - percent) >= 100 * MIN_GROUP
        }
        return Spread(rounded_count(self.n), rounded_count(self.unknown), **percentiles)


def spread(known: Numbers, unknown: int) -> Spread:
    """Compute statistics of the values of a metric.

    Args:
        known: known values, in ascending order.
        unknown: number of members of the population without a known value.

    Returns:
        Statistics with percentiles interpolated linearly between the two nearest values. Without
        values all statistics except the counts are None; with a single value `std` is None.
    """
    if not known.size:
        return Spread(0, unknown)
    return Spread(
        int(known.size),
        unknown,
        min=known[0].item(),
        max=known[-1].item(),
        mean=float(known.mean()),
        std=float(known.std(ddof=1)) if known.size > 1 else None,
        **{name: _percentile(known, percent) for name, percent in _PERCENTILES.items()},
    )


def _percentile(ascending: Numbers, percent: int) -> float:
    """Interpolate like `numpy.percentile`, which would sort the values again."""
    below, rest = divmod((ascending.size - 1) * percent, 100)
    low, high = ascending[below].item(), ascending[min(below + 1, ascending.size - 1)].item()
    return float(low + (high - low) * rest / 100)
