"""Times in the centre's logs: epoch numbers inside, local time in most files."""

from datetime import UTC, datetime
from functools import cache
from zoneinfo import ZoneInfo

ZONE = ZoneInfo("America/New_York")
MICROSECONDS = 1_000_000
MINUTE_S = 60
HOUR_S = 3_600
DAY_S = 86_400


@cache
def local(year: int, month: int, day: int, clock: str = "00:00:00") -> int:
    """Return the epoch second of a local wall-clock time such as ``"09:52:55"``."""
    hour, minute, second = map(int, clock.split(":"))
    return int(datetime(year, month, day, hour, minute, second, tzinfo=ZONE).timestamp())


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
    return local(day.year, day.month, day.day)


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


def utc_name(epoch_s: int) -> str:
    """Return a UTC time for a file name: ``20170706T135255Z``."""
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y%m%dT%H%M%SZ")


def utc_week(epoch_s: int) -> str:
    """Return the ISO week for a file name: ``2016-W43``."""
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%G-W%V")


def iso(epoch_s: float) -> str:
    """Return a UTC time as ISO 8601."""
    return datetime.fromtimestamp(epoch_s, UTC).isoformat()
