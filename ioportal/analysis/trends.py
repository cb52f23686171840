"""Figures of many jobs per hour, day, week, month or year of a calendar."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl

from ioportal.analysis.timelines import Gap, Known

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import date, tzinfo

PREFERRED_BUCKETS = 100  # buckets: more are drawn only where somebody asks for them,
MAX_BUCKETS = 400  # and never more than these: six metrics by the day of a year are a page of 90 kB


class Step(StrEnum):
    """How long a bucket is, by the calendar."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    YEAR = "year"

    @property
    def length(self) -> timedelta:
        """How long it is, about."""
        return _LENGTHS[self]

    @property
    def form(self) -> str:
        """How a bucket is named by its begin, for strftime."""
        return _FORMS[self]

    def fits(self, start: datetime, end: datetime, at_most: int) -> bool:
        """Whether [start, end) is about `at_most` of it, or fewer."""
        return (end - start) <= at_most * self.length or self is Step.YEAR


_LENGTHS = {
    Step.HOUR: timedelta(hours=1),
    Step.DAY: timedelta(days=1),
    Step.WEEK: timedelta(days=7),
    Step.MONTH: timedelta(days=30),
    Step.YEAR: timedelta(days=365),
}
_FORMS = {
    Step.HOUR: "%Y-%m-%d %H:%M",
    Step.DAY: "%a %Y-%m-%d",
    Step.WEEK: "week of %Y-%m-%d",
    Step.MONTH: "%b %Y",
    Step.YEAR: "%Y",
}


@dataclass(frozen=True)
class Buckets:
    """Neighbouring parts of a range; the first and the last may be cut by it.

    `edges` has one moment more than there are buckets, in order.
    """

    step: Step
    edges: tuple[datetime, ...]
    zone: tzinfo

    def __len__(self) -> int:
        return len(self.edges) - 1

    @property
    def start(self) -> datetime:
        """Where the first one begins."""
        return self.edges[0]

    @property
    def end(self) -> datetime:
        """Where the last one ends."""
        return self.edges[-1]

    @property
    def bounds(self) -> list[tuple[datetime, datetime]]:
        """Begin and end of each."""
        return list(pairwise(self.edges))

    @property
    def labels(self) -> list[str]:
        """What each is called: 'week of 2017-07-03'."""
        begins = [_floor(self.start, self.step, self.zone), *self.edges[1:-1]]
        return [f"{begin.astimezone(self.zone):{self.step.form}}" for begin in begins]


def step_for(start: datetime, end: datetime, at_most: int = PREFERRED_BUCKETS) -> Step:
    """Return the shortest step that makes about `at_most` buckets of [start, end), or fewer."""
    return next(step for step in Step if step.fits(start, end, at_most))


def buckets(start: datetime, end: datetime, step: Step, zone: tzinfo) -> Buckets:
    """Cut [start, end) where hours, days, weeks (from Monday), months or years of a zone begin.

    Args:
        start: begin of the range.
        end: end of the range, after `start`.
        step: how long a bucket is.
        zone: whose clock and calendar counts; its days may have 23 or 25 hours.
    """
    edges = [start]
    begin = _floor(start, step, zone)
    while (begin := _next(begin, step, zone)) < end:
        if begin > edges[-1]:
            edges.append(begin)
    return Buckets(step, (*edges, end), zone)


def table(
    rows: Iterable[tuple[int, Mapping[str, float | None]]],
    columns: Mapping[str, type[float]],
    count: int,
    default: float | None,
) -> pl.DataFrame:
    """Lay out what is known of some buckets as one row for each of all.

    Args:
        rows: a bucket's number, from 0, and some of its values.
        columns: the names of all values, and whether each is an int or a float.
        count: how many buckets there are.
        default: what stands where nothing is known: 0 for counts.

    Returns:
        Columns `columns`, `count` rows.
    """
    values: dict[str, list[float | None]] = {name: [default] * count for name in columns}
    for number, known in rows:
        for name, value in known.items():
            values[name][number] = value
    return pl.DataFrame(values, schema=columns)


def missing_reads(reads: Mapping[int, Collection[int]], edges: Sequence[datetime]) -> list[Gap]:
    """Return where targets were not read.

    A target is missed from its first read to its last: it may have been added, or taken away. Where
    none was read nothing is known.

    Args:
        reads: per target, the numbers of the bins in which it was read.
        edges: of the bins, in order; one more than there are bins.

    Returns:
        Neighbouring bins of which the same is known as one gap, in order.
    """
    missed = [0] * (len(edges) - 1)
    seen = [0] * (len(edges) - 1)
    for numbers in reads.values():
        for number in range(min(numbers), max(numbers) + 1):
            (seen if number in numbers else missed)[number] += 1
    gaps: list[Gap] = []
    for number, (start, end) in enumerate(pairwise(edges)):
        if seen[number] and not missed[number]:
            continue
        known = Known.PART if seen[number] else Known.NOTHING
        if gaps and gaps[-1].end == start and gaps[-1].known is known:
            gaps[-1] = Gap(gaps[-1].start, end, known)
        else:
            gaps.append(Gap(start, end, known))
    return gaps


def _floor(moment: datetime, step: Step, zone: tzinfo) -> datetime:
    """Return the begin of the bucket that holds a moment."""
    local = moment.astimezone(zone)
    if step is Step.HOUR:
        since = timedelta(
            minutes=local.minute, seconds=local.second, microseconds=local.microsecond
        )
        return moment.astimezone(UTC) - since
    day = local.date()
    if step is Step.WEEK:
        day -= timedelta(days=day.weekday())
    elif step is Step.MONTH:
        day = day.replace(day=1)
    elif step is Step.YEAR:
        day = day.replace(month=1, day=1)
    return _midnight(day, zone)


def _next(begin: datetime, step: Step, zone: tzinfo) -> datetime:
    """Return the begin of the bucket after one that begins then."""
    if step is Step.HOUR:
        return begin + step.length
    day = begin.astimezone(zone).date()
    if step is Step.MONTH:
        return _midnight((day + timedelta(days=31)).replace(day=1), zone)
    if step is Step.YEAR:
        return _midnight(day.replace(year=day.year + 1), zone)
    return _midnight(day + step.length, zone)


def _midnight(day: date, zone: tzinfo) -> datetime:
    return datetime.combine(day, time(), zone).astimezone(UTC)
