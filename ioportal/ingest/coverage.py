"""Observed parts of a range as a strip of 1,000 units, for a picture of many sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

WIDTH = 1_000


def strip(
    observed: Sequence[tuple[datetime, datetime]], start: datetime, end: datetime
) -> list[tuple[float, float]]:
    """Lay intervals out as bars.

    Args:
        observed: disjoint intervals within [start, end), in order.
        start: start of the range.
        end: end of the range, after `start`.

    Returns:
        Position and width of each bar, in units of `WIDTH`. Bars are at least one unit wide, so
        that they are visible. Touching bars are merged.
    """
    bars: list[tuple[float, float]] = []
    for since, until in observed:
        left = WIDTH * ((since - start) / (end - start))
        right = max(left + 1, WIDTH * ((until - start) / (end - start)))
        if bars and left <= sum(bars[-1]):
            bars[-1] = (bars[-1][0], right - bars[-1][0])
        else:
            bars.append((left, right - left))
    return bars
