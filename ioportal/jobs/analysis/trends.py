"""Figures of many jobs per hour, day, week, month or year of a calendar."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl

from ioportal.core.timelines import Gap, Known

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import date, tzinfo

PREFERRED_BUCKETS = 100  # unless a user selects a shorter step
MAX_BUCKETS = 400  # six metrics by day over a year are a page of 90 kB


class Step(StrEnum):
    """Length of a bucket, by the calendar."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    YEAR = "year"

    @property
    def length(self) -> timedelta:
        """Approximate length."""
        return _LENGTHS[self]

    @property
    def form(self) -> str:
        """Format of a bucket's label for strftime, from its start."""
        return _FORMS[self]

    def fits(self, start: datetime, end: datetime, at_most: int) -> bool:
        """Whether [start, end) has at most about `at_most` buckets of this step."""
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
    """Adjacent parts of a range, which may cut the first and the last.

    `edges` are the sorted bounds, one more than there are buckets.
    """

    step: Step
    edges: tuple[datetime, ...]
    zone: tzinfo

    def __len__(self) -> int:
        return len(self.edges) - 1

    @property
    def start(self) -> datetime:
        """Start of the first bucket."""
        return self.edges[0]

    @property
    def end(self) -> datetime:
        """End of the last bucket."""
        return self.edges[-1]

    @property
    def bounds(self) -> list[tuple[datetime, datetime]]:
        """Start and end of each bucket."""
        return list(pairwise(self.edges))

    @property
    def labels(self) -> list[str]:
        """Label of each bucket, such as 'week of 2017-07-03'."""
        starts = [_floor(self.start, self.step, self.zone), *self.edges[1:-1]]
        return [f"{start.astimezone(self.zone):{self.step.form}}" for start in starts]


def step_for(start: datetime, end: datetime, at_most: int = PREFERRED_BUCKETS) -> Step:
    """Return the shortest step with at most about `at_most` buckets in [start, end)."""
    return next(step for step in Step if step.fits(start, end, at_most))


def buckets(start: datetime, end: datetime, step: Step, zone: tzinfo) -> Buckets:
    """Split [start, end) at the starts of hours, days, weeks (Monday), months or years of a zone.

    Args:
        start: start of the range.
        end: end of the range, after `start`.
        step: length of a bucket.
        zone: zone of the calendar, whose days may have 23 or 25 hours.
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
    """Return a table with a row for every bucket.

    Args:
        rows: bucket number, from 0, and known values of the bucket.
        columns: name and type of each value.
        count: number of buckets.
        default: value for all other cells, such as 0 for counts.

    Returns:
        A table with the columns `columns` and `count` rows.
    """
    values: dict[str, list[float | None]] = {name: [default] * count for name in columns}
    for number, known in rows:
        for name, value in known.items():
            values[name][number] = value
    return pl.DataFrame(values, schema=columns)


def missing_reads(reads: Mapping[int, Collection[int]], edges: Sequence[datetime]) -> list[Gap]:
    """Return the gaps in the reads of targets.

    A target counts as missing only between its first and its last read, because it may have been
    added or removed. Without a read of any target nothing is known.

    Args:
        reads: numbers of the bins with reads, by target.
        edges: sorted bounds of the bins, one more than there are bins.

    Returns:
        Gaps in order; neighbouring bins in the same state are one gap.
    """
    missing = [0] * (len(edges) - 1)
    present = [0] * (len(edges) - 1)
    for numbers in reads.values():
        for number in range(min(numbers), max(numbers) + 1):
            (present if number in numbers else missing)[number] += 1
    gaps: list[Gap] = []
    for number, (start, end) in enumerate(pairwise(edges)):
        if present[number] and not missing[number]:
            continue
        known = Known.PART if present[number] else Known.NOTHING
        if gaps and gaps[-1].end == start and gaps[-1].known is known:
            gaps[-1] = Gap(gaps[-1].start, end, known)
        else:
            gaps.append(Gap(start, end, known))
    return gaps


def _floor(moment: datetime, step: Step, zone: tzinfo) -> datetime:
    """Return the start of the bucket that contains a time."""
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
    """Return the start of the next bucket."""
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
