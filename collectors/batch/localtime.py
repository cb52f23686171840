"""Local times without a UTC offset, read in the zone of the cluster.

An hour repeats in autumn: a time inside it has two readings until other data decides. An hour is
skipped in spring: a time inside it comes from a clock that is not yet adjusted, and is read with
the offset before the change.
"""

import re
from datetime import UTC, datetime
from itertools import product
from zoneinfo import ZoneInfo

from collectors.batch.values import Unreadable, quoted

EARLIEST_S = int(datetime(1990, 1, 1, tzinfo=UTC).timestamp())
LATEST_S = int(datetime(9999, 1, 1, tzinfo=UTC).timestamp())

_STAMP = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d", re.ASCII)

_SHOWN = "%Y-%m-%dT%H:%M:%SZ"

Readings = tuple[datetime, ...]  # UTC, ascending: empty (unknown), or one or two


def stamp(text: str, what: str) -> datetime:
    """Return the time ``YYYY-MM-DDTHH:MM:SS``, naive unless an offset follows.

    Args:
        text: as printed; a fraction of a second and an offset may follow.
        what: the name in messages.

    Raises:
        Unreadable: it is not such a time.
    """
    try:
        if _STAMP.match(text):
            return datetime.fromisoformat(text)
    except ValueError:
        pass  # a month 13, or trailing text
    raise Unreadable(f"{what} {quoted(text)} is not a time")


def readings(wall: datetime, zone: ZoneInfo) -> Readings:
    """Return the readings of `wall` in `zone`: two in a repeated hour, otherwise a single time.

    Raises:
        Unreadable: the time lies outside the calendar.
    """
    if wall.tzinfo:
        return (utc(wall),)
    first = utc(wall.replace(tzinfo=zone))
    if zone.utcoffset(wall) == zone.utcoffset(wall.replace(fold=1)):
        return (first,)
    second = utc(wall.replace(tzinfo=zone, fold=1))
    return (first, second) if second > first else (first,)


def utc(aware: datetime) -> datetime:
    """Return an aware time in UTC.

    Raises:
        Unreadable: the time lies outside the calendar.
    """
    try:
        return aware.astimezone(UTC)
    except OverflowError as error:
        raise Unreadable(f"time {aware} is outside the calendar") from error


def moment(epoch_s: int) -> datetime:
    """Return the time `epoch_s` seconds after 1970.

    Raises:
        Unreadable: it is before 1990 or after 9998: no time of a job.
    """
    if not EARLIEST_S <= epoch_s <= LATEST_S:
        raise Unreadable(f"{epoch_s} is not the time of a job in epoch seconds")
    return datetime.fromtimestamp(epoch_s, UTC)


def run_between(
    starts: Readings, ends: Readings, lasted_s: float | None, submitted: datetime | None = None
) -> tuple[datetime | None, datetime | None]:
    """Return start and end of a run: the pair of readings with the best fit.

    Args:
        starts: readings of the start.
        ends: readings of the end.
        lasted_s: duration by the source; None: unknown.
        submitted: time before which the job did not start; None: unknown.

    Returns:
        The pair closest to `lasted_s`; without it, a pair that does not end before it starts. Pairs
        that do not start before `submitted` are preferred. The earliest of equal pairs.

    Raises:
        Unreadable: every pair ends before it starts.
    """
    pairs = product(starts or (None,), ends or (None,))
    start, end = min(pairs, key=lambda pair: _misfit(pair, lasted_s, submitted))
    if start and end and end < start:
        raise Unreadable(f"the job ends at {end:{_SHOWN}}, before it starts at {start:{_SHOWN}}")
    return start, end


def _misfit(
    pair: tuple[datetime | None, datetime | None],
    lasted_s: float | None,
    submitted: datetime | None,
) -> tuple[bool, bool, float]:
    """Return whether a pair ends too early, starts too early, and differs from the duration."""
    start, end = pair
    is_early = bool(start and submitted and start < submitted)
    if start is None or end is None:
        return False, is_early, 0
    span_s = (end - start).total_seconds()
    return span_s < 0, is_early, 0 if lasted_s is None else abs(span_s - lasted_s)
