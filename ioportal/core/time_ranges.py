"""Time ranges as URLs select them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from ioportal.core.charts.time_axis import TimeAxis
from ioportal.core.formatting import duration
from ioportal.core.times import RECENT

if TYPE_CHECKING:
    from django.http import QueryDict

_SHORTEST = timedelta(milliseconds=1)
_MARGIN = 0.02  # of a run, before and after it
_DIGITS = 3  # of displayed seconds
_FIRST_YEAR, _LAST_YEAR = 1970, 2200  # leaves room for arithmetic on times


@dataclass(frozen=True)
class TimeRange:
    """A range [start, end), and how the URL selects it."""

    start: datetime
    end: datetime
    is_selected: bool = False  # by its times
    last: str = ""  # a key of `RECENT`, or `ALL`

    @classmethod
    def from_query(cls, query: QueryDict, default: TimeRange) -> TimeRange:
        """Read ``start`` and ``end``, or ``last``: up to the end of the default.

        A missing time is taken from the default.

        Raises:
            ValidationError: one is not a time, or the range is empty.
        """
        since, until = query.get("start"), query.get("end")
        if not (since or until):
            last = query.get("last", "")
            return (
                cls(default.end - RECENT[last], default.end, last=last)
                if last in RECENT
                else default
            )
        start = moment(since) if since else default.start
        end = moment(until) if until else default.end
        if end - start < _SHORTEST:
            raise ValidationError("The end of the range must be after its start.")
        return cls(start, end, is_selected=True)

    @classmethod
    def or_default(cls, query: QueryDict, default: TimeRange) -> tuple[TimeRange, list[str]]:
        """Read a range like `from_query`; return the default with messages if it is invalid."""
        try:
            return cls.from_query(query, default), []
        except ValidationError as error:
            return default, error.messages

    @property
    def with_margin(self) -> TimeRange:
        """The range in whole seconds with a small margin, for charts of a run."""
        margin = (self.end - self.start) * _MARGIN + timedelta(seconds=1)
        start, end = self.start - margin, self.end + margin
        return TimeRange(start.replace(microsecond=0), end.replace(microsecond=0))

    @property
    def axis(self) -> TimeAxis:
        """The range on the site's clock, with the UTC offset of its start."""
        offset = timezone.localtime(self.start).utcoffset() or timedelta()
        return TimeAxis(self.start, self.end, offset, timezone.now())

    @property
    def offset(self) -> str:
        """The UTC offset of its clock in ISO 8601: '-04:00'."""
        return _offset(self.start)

    @property
    def clock(self) -> str:
        """The site's zone and its UTC offset: 'America/New_York, UTC-04:00'."""
        return _clock(self.start)

    def label_within(self, whole: TimeRange) -> str:
        """Return start and length, with the date if `whole` spans days: '12:05:00, 10 s'."""
        start = timezone.localtime(self.start)
        is_one_day = timezone.localtime(whole.start).date() == timezone.localtime(whole.end).date()
        clock = f"{start:%H:%M:%S}" if is_one_day else f"{start:%Y-%m-%d %H:%M:%S}"
        return f"{clock}, {duration(round((self.end - self.start).total_seconds(), _DIGITS))}"


@dataclass(frozen=True)
class OpenRange:
    """A range that may be unbounded at either end, and how the URL selects it."""

    start: datetime | None
    end: datetime | None
    last: str = ""  # a key of `RECENT`, or `ALL`

    @property
    def clock(self) -> str:
        """The site's zone, and its UTC offset at the start or end."""
        return _clock(self.start or self.end)


def _offset(moment: datetime) -> str:
    return timezone.localtime(moment).isoformat()[-6:]


def _clock(moment: datetime | None) -> str:
    zone = timezone.get_current_timezone_name()
    return zone if zone == "UTC" or moment is None else f"{zone}, UTC{_offset(moment)}"


def moment(text: str) -> datetime:
    """Return a time in a URL; without an offset it is on the site's clock.

    Raises:
        ValidationError: it is not a time.
    """
    try:
        parsed = parse_datetime(text)
    except ValueError:
        parsed = None
    if parsed is None:
        raise ValidationError(f"{text[:64]!r} is not a time. Write it as 2017-07-06 09:52:55.")
    if not _FIRST_YEAR <= parsed.year < _LAST_YEAR:
        raise ValidationError(
            f"{text[:64]!r} is out of range: years {_FIRST_YEAR} to {_LAST_YEAR - 1} are supported."
        )
    aware = parsed if timezone.is_aware(parsed) else timezone.make_aware(parsed)
    return aware.astimezone(UTC)
