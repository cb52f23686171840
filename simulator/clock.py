"""Times in the centre's logs: epoch numbers inside, local time in most files.

The story's dates (`local`) are of 2016 and 2017 unless `end_story` shifts them all by whole days.
"""

import sys
from datetime import UTC, date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

ZONE = ZoneInfo("America/New_York")
MICROSECONDS = 1_000_000
MINUTE_S = 60
HOUR_S = 3_600
DAY_S = 86_400
STORY_ENDS = date(2017, 10, 30)

_shift = timedelta(0)


def end_story(day: date) -> None:
    """Shift the story so that `day` is its last; times of day stay.

    Raises:
        RuntimeError: the story is imported already, with its dates.
    """
    global _shift  # noqa: PLW0603  (dates are constants of the story)
    if "simulator.story" in sys.modules:
        raise RuntimeError("the story has its dates already")
    _shift = day - STORY_ENDS


@cache
def local(year: int, month: int, day: int, clock: str = "00:00:00") -> int:
    """Return the epoch second of a date of the story, at a time of day such as ``"09:52:55"``."""
    at = datetime.fromisoformat(f"{year}-{month:02}-{day:02}T{clock}")
    return int((at + _shift).replace(tzinfo=ZONE).timestamp())


def moment(text: str) -> int:
    """Return the epoch second of a date or time on the command line; local without an offset."""
    typed = datetime.fromisoformat(text)
    return int((typed if typed.tzinfo else typed.replace(tzinfo=ZONE)).timestamp())


def local_time(epoch_s: float) -> datetime:
    """Return the site's local time."""
    return datetime.fromtimestamp(epoch_s, ZONE)


def midnight(epoch_s: int) -> int:
    """Return the start of a moment's local day."""
    day = local_time(epoch_s)
    return int(datetime(day.year, day.month, day.day, tzinfo=ZONE).timestamp())


def pbs_stamp(epoch_s: int) -> str:
    """Return the header time of a PBS record: local, without a zone."""
    return local_time(epoch_s).strftime("%m/%d/%Y %H:%M:%S")


def syslog_stamp(epoch_us: int) -> str:
    """Return an RFC 5424 time stamp: local, with its offset."""
    second, microsecond = divmod(epoch_us, MICROSECONDS)
    return local_time(second).replace(microsecond=microsecond).isoformat(timespec="microseconds")


def local_month(epoch_s: int) -> str:
    """Return the local month as ``YYYYMM``, the name of a log file."""
    return local_time(epoch_s).strftime("%Y%m")


def local_day(epoch_s: int) -> str:
    """Return the local day as ``YYYYMMDD``, for a file name."""
    return local_time(epoch_s).strftime("%Y%m%d")


def utc_name(epoch_s: int) -> str:
    """Return a UTC time for a file name: ``20170706T135255Z``."""
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y%m%dT%H%M%SZ")


def utc_week(epoch_s: int) -> str:
    """Return the ISO week for a file name: ``2016-W43``."""
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%G-W%V")


def iso(epoch_s: float) -> str:
    """Return a UTC time as ISO 8601."""
    return datetime.fromtimestamp(epoch_s, UTC).isoformat()
