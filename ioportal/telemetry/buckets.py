"""Buckets of roll-ups: their boundaries, and intervals widened to them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from ioportal.telemetry.coverage import Interval

if TYPE_CHECKING:
    from collections.abc import Iterable

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def floor(moment: datetime, width: timedelta) -> datetime:
    """Return the start of the bucket that contains a time."""
    return moment - (moment - EPOCH) % width


def ceil(moment: datetime, width: timedelta) -> datetime:
    """Return the end of the bucket that ends at a time or contains it."""
    return moment + (EPOCH - moment) % width


def divided(
    spans: list[Interval], width: timedelta, ended: datetime
) -> tuple[list[Interval], list[Interval]]:
    """Widen intervals to buckets, join them, and return the ended and the open parts."""
    whole = joined(Interval(floor(start, width), ceil(end, width)) for start, end in spans)
    done = [Interval(start, min(end, ended)) for start, end in whole]
    left = [Interval(max(start, ended), end) for start, end in whole if end > ended]
    return [span for span in done if span.start < span.end], left


def joined(spans: Iterable[Interval]) -> list[Interval]:
    """Join overlapping and adjacent intervals."""
    joined: list[Interval] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1].end:
            joined[-1] = Interval(joined[-1].start, max(joined[-1].end, end))
        else:
            joined.append(Interval(start, end))
    return joined
