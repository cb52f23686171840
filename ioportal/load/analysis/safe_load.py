"""The highest load up to which the latency of a server is shown to be low.

Single windows and bursts do not count: the advice would follow every outlier.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ioportal.load.analysis.load_ramp import student_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]
    Bools = npt.NDArray[np.bool_]

MIN_UNIT_WINDOWS = 3  # of a unit at a level of loads; others do not count
MIN_UNITS = 3  # of a level
WIDEST_RATIO = 1.5  # highest / lowest load of a level
MAX_GAP_RATIO = 1.1  # of adjacent loads


@dataclass(frozen=True)
class Windows:
    """Windows with a steady load; arrays of shape (n,)."""

    load: Floats
    factor: Floats  # of the time of their requests
    unit: Ints  # of resampling
    day: Ints

    def __getitem__(self, chosen: Ints | Bools | slice) -> Windows:
        return Windows(self.load[chosen], self.factor[chosen], self.unit[chosen], self.day[chosen])

    @classmethod
    def joined(cls, parts: Sequence[Windows]) -> Windows:
        """Return the windows of all parts."""
        names = ("load", "factor", "unit", "day")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    @property
    def days(self) -> int:
        """Number of days."""
        return len(np.unique(self.day))

    @property
    def units(self) -> int:
        """Number of units."""
        return len(np.unique(self.unit))

    @property
    def supported_load(self) -> float | None:
        """The highest load that enough windows of enough units have or exceed; None: too few.

        Of a unit, these windows have a load that `MIN_UNIT_WINDOWS` of them reach.
        """
        order = np.lexsort((-self.load, self.unit))
        _, first, counts = np.unique(self.unit[order], return_index=True, return_counts=True)
        chosen = first[counts >= MIN_UNIT_WINDOWS] + MIN_UNIT_WINDOWS - 1
        by_unit = np.sort(self.load[order[chosen]])
        return float(by_unit[-MIN_UNITS]) if len(by_unit) >= MIN_UNITS else None


@dataclass(frozen=True)
class SafeLoad:
    """The highest load up to which the latency is shown to be low.

    Args:
        load: as many windows and units as a level needs have this load or a higher safe one.
        windows: number of windows up to it that are connected with it.
        days: number of days with these windows.
        highest_seen: highest steady load.
    """

    load: float
    windows: int
    days: int
    highest_seen: float


@dataclass(frozen=True)
class _Level:
    """Adjacent bins with enough windows together."""

    windows: Windows
    bins: slice


def _levels(bins: Sequence[Windows]) -> list[_Level]:
    """Join bins by ascending load until they have enough windows, and leave out others."""
    levels = []
    first = 0
    for last, highest in enumerate(bins):
        while first < last and highest.load.max() > WIDEST_RATIO * bins[first].load.min():
            first += 1
        windows = Windows.joined(bins[first : last + 1])
        if windows.supported_load is not None:
            levels.append(_Level(windows, slice(first, last + 1)))
            first = last + 1
    return levels


def _connected_loads(levels: list[_Level]) -> tuple[float, float]:
    """Return the lowest and highest load without a gap to the median load."""
    loads = np.sort(np.concatenate([level.windows.load for level in levels]))
    run = np.append(0, np.cumsum(loads[1:] > MAX_GAP_RATIO * loads[:-1]))
    connected = loads[run == run[len(run) // 2]]
    return float(connected[0]), float(connected[-1])


def safe_load(
    steady: Windows,
    bins: Sequence[Windows],
    latency: Floats,
    replicates: Floats,
    *,
    limit: float,
    most: float,
) -> SafeLoad | None:
    """Return the highest load up to which the latency is shown to be below a limit.

    Levels of loads with too few windows or units do not count. The loads of the others count
    as far as they are connected with the usual load. Their latencies are tested by ascending load
    until the first that may reach the limit, so that the confidence is the same as of one test.

    Args:
        steady: all steady windows; factors are relative to that without load.
        bins: windows of similar loads, by ascending load; some windows are in no bin.
        latency: shape (bins,), latency relative to that without load; it never falls.
        replicates: shape (replicates, bins), the same in resampled units; NaN: no windows.
        limit: relative latency.
        most: load above which no load is safe.

    Returns:
        None: there is no such load.
    """
    levels = _levels(bins)
    if not levels:
        return None
    lowest, highest = _connected_loads(levels)
    accepted: list[Windows] = []
    for level in levels:
        loads = level.windows.load
        connected = level.windows[(loads >= lowest) & (loads <= highest)]
        if not len(connected.load):
            continue
        # Of the highest bin: the latency of the others is not higher.
        resampled = np.fmax.reduce(replicates[:, level.bins], axis=1)
        value = float(latency[level.bins][-1])
        if student_interval(value, resampled, level.windows.units).high >= limit:
            break
        accepted.append(connected)
    if not accepted:
        return None
    windows = Windows.joined(accepted)
    load = min(windows.supported_load or 0.0, most)
    windows = windows[windows.load <= load]
    if not len(windows.load):
        return None
    return SafeLoad(load, len(windows.load), windows.days, float(steady.load.max()))
