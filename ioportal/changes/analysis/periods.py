"""The periods before and after a change, for a comparison.

Both periods have the same length, in whole weeks if possible, since weekends differ from other
days. They exclude the roll-out, and end at the nearest other event: another change, or the upgrade
of a server. Events that would leave fewer days than a comparison needs cannot be separated from
the change: they are excluded like its roll-out, and measured together with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from ioportal.jobs.analysis.comparison.results import MIN_DAYS

SHORTEST = timedelta(days=MIN_DAYS)  # of a period, unless data ends earlier
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
    """Two periods of the same length, and the events that are measured together."""

    before: Period
    after: Period
    together: tuple[Event, ...]


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
        reverted: when the change was reverted; None: it is active.
    """
    first, last = extent
    last = min(last, reverted) if reverted else last
    (start, stop), together = _joined(change, neighbours)
    if start - first < _DAY:
        return NoPeriods("There is less than a day of data before it.")
    if last - stop < _DAY:
        return NoPeriods("There is less than a day of data after it.")
    begin = max([first, *(each.end for each in neighbours if each.end < start)])
    end = min([last, *(each.start for each in neighbours if each.start > stop)])
    length = _whole(min(start - begin, end - stop, LONGEST))
    return Periods((start - length, start), (stop, stop + length), tuple(together))


def _joined(change: Event, neighbours: list[Event]) -> tuple[Period, list[Event]]:
    """Return the span of a change and of the events close to it, or to one of those; and these."""
    start, stop = change.start, change.end
    together: list[Event] = []
    rest = sorted(neighbours, key=lambda each: each.start)
    while close := [e for e in rest if e.start - stop < SHORTEST and start - e.end < SHORTEST]:
        together += close
        rest = [each for each in rest if each not in close]
        start = min([start, *(each.start for each in close)])
        stop = max([stop, *(each.end for each in close)])
    return (start, stop), sorted(together, key=lambda each: each.start)


def _whole(length: timedelta) -> timedelta:
    """Return the whole weeks of two weeks and more, and the whole days of less."""
    unit = _WEEK if length >= _WHOLE_WEEKS_FROM else _DAY
    return length // unit * unit
