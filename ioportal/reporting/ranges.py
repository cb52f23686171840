"""The range of time that a page shows, as its URL says."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from ioportal.charts.time_axis import TimeAxis
from ioportal.reporting.formatting import duration

if TYPE_CHECKING:
    from django.http import QueryDict

_SHORTEST = timedelta(milliseconds=1)
_DIGITS = 3  # of seconds that are read
_FIRST_YEAR, _LAST_YEAR = 1970, 2200  # Lustre counts from 1970; sums of times stay sums of times


@dataclass(frozen=True)
class TimeRange:
    """A range [start, end) and whether the URL asks for it."""

    start: datetime
    end: datetime
    asked: bool = False

    @classmethod
    def from_query(cls, query: QueryDict, default: TimeRange) -> TimeRange:
        """Read ``start`` and ``end``; what is missing is the default's.

        Raises:
            ValidationError: one is not a time, or the range is empty.
        """
        start = _moment(query.get("start"), default.start)
        end = _moment(query.get("end"), default.end)
        if end - start < _SHORTEST:
            raise ValidationError("The range must end after it starts.")
        return cls(start, end, asked=bool(query.get("start") or query.get("end")))

    @property
    def axis(self) -> TimeAxis:
        """The range on the site's clock, with the offset of its start."""
        offset = timezone.localtime(self.start).utcoffset() or timedelta()
        return TimeAxis(self.start, self.end, offset)

    @property
    def local_start(self) -> str:
        """Its start as a browser's field takes it."""
        return _local(self.start)

    @property
    def local_end(self) -> str:
        """Its end as a browser's field takes it."""
        return _local(self.end)

    @property
    def offset(self) -> str:
        """The offset of its clock as ISO 8601 writes it: '-04:00'."""
        return timezone.localtime(self.start).isoformat()[-6:]

    @property
    def clock(self) -> str:
        """The site's zone and that offset: 'America/New_York, UTC-04:00'."""
        zone = timezone.get_current_timezone_name()
        return zone if zone == "UTC" else f"{zone}, UTC{self.offset}"

    def words_within(self, whole: TimeRange) -> str:
        """Its begin and length, with the day where `whole` has several: '12:05:00, 10 s'."""
        start = timezone.localtime(self.start)
        is_one_day = timezone.localtime(whole.start).date() == timezone.localtime(whole.end).date()
        clock = f"{start:%H:%M:%S}" if is_one_day else f"{start:%m-%d %H:%M:%S}"
        return f"{clock}, {duration(round((self.end - self.start).total_seconds(), _DIGITS))}"


def _local(moment: datetime) -> str:
    parts = "milliseconds" if moment.microsecond else "seconds"
    return timezone.make_naive(moment).isoformat(timespec=parts)


def _moment(text: str | None, default: datetime) -> datetime:
    if not text:
        return default
    try:
        moment = parse_datetime(text)
    except ValueError:
        moment = None
    if moment is None:
        raise ValidationError(f"{text[:64]!r} is not a time like 2017-07-06T09:52:55.")
    if not _FIRST_YEAR <= moment.year < _LAST_YEAR:
        raise ValidationError(f"{text[:64]!r} is beyond all records.")
    aware = moment if timezone.is_aware(moment) else timezone.make_aware(moment)
    return aware.astimezone(UTC)
