"""The periods before and after a change, for a comparison.

Both periods have the same length, in whole weeks if possible, since weekends differ from other
days. They exclude the roll-out, and end where a neighbouring event begins: another change, or the
upgrade of a server. An event too close to leave `SHORTEST` cannot be excluded, and is pointed out.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

SHORTEST = timedelta(days=2)  # of a period
LONGEST = timedelta(weeks=4)
_DAY = timedelta(days=1)
_WEEK = timedelta(weeks=1)
_WHOLE_WEEKS_FROM = 2 * _WEEK

Period = tuple[datetime, datetime]  # half-open


@dataclass(frozen=True)
class Event:
    """A change with its roll-out, or the upgrade of a server, [start, end) with end >= start."""

    start: datetime
    end: datetime
    text: str


@dataclass(frozen=True)
class Periods:
    """Two periods of the same length, and remarks about what they could not exclude."""

    before: Period
    after: Period
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class NoPeriods:
    """The reason why there is nothing to compare."""

    reason: str


def periods(
    change: Event, extent: Period, neighbours: list[Event], reverted: datetime | None = None
) -> Periods | NoPeriods:
    """Return the periods before and after a change.

    Args:
        change: the change and its roll-out.
        extent: time of the data.
        neighbours: other events that may have had an effect on the same jobs.
        reverted: when the change was reverted; None: it is in force.
    """
    first, last = extent
    last = min(last, reverted) if reverted else last
    if change.start - first < _DAY:
        return NoPeriods("There is less than a day of data before it.")
    if last - change.end < _DAY:
        return NoPeriods("There is less than a day of data after it.")
    earlier = [e for e in neighbours if e.start < change.start and e.end <= change.start]
    later = [e for e in neighbours if e.start > change.start and e.start >= change.end]
    just_before = [e for e in earlier if change.start - e.end < SHORTEST]
    just_after = [e for e in later if e.start - change.end < SHORTEST]
    begin = max([first, *(e.end for e in earlier if e not in just_before)])
    end = min([last, *(e.start for e in later if e not in just_after)])
    length = _whole(min(change.start - begin, end - change.end, LONGEST))
    before = (change.start - length, change.start)
    after = (change.end, change.end + length)
    remarks = [
        f"{event.text}: at the same time. Its effect cannot be separated."
        for event in neighbours
        if event not in earlier and event not in later
    ]
    remarks += [
        f"{event.text}: in the period {name}, too close to exclude."
        for name, period, events in (("before", before, just_before), ("after", after, just_after))
        for event in events
        if _is_in(event, period)
    ]
    if length < SHORTEST:
        remarks.append("The periods are shorter than two days.")
    return Periods(before, after, tuple(remarks))


def _is_in(event: Event, period: Period) -> bool:
    start, end = period
    return start <= event.start < end or (event.start < end and event.end > start)


def _whole(length: timedelta) -> timedelta:
    """Return the whole weeks of two weeks and more, and the whole days of less."""
    unit = _WEEK if length >= _WHOLE_WEEKS_FROM else _DAY
    return length // unit * unit
