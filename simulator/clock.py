"""Times as the centre writes them: epoch numbers inside, the site's local time in most files."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

ZONE = ZoneInfo("America/New_York")
MICROSECONDS = 1_000_000


def local(year: int, month: int, day: int, clock: str = "00:00:00") -> int:
    """Return the epoch second of a local wall-clock time such as ``"09:52:55"``."""
    hour, minute, second = map(int, clock.split(":"))
    return int(datetime(year, month, day, hour, minute, second, tzinfo=ZONE).timestamp())


def pbs_stamp(epoch_s: int) -> str:
    """Return the header time of a PBS record: local, without a zone."""
    return datetime.fromtimestamp(epoch_s, ZONE).strftime("%m/%d/%Y %H:%M:%S")


def syslog_stamp(epoch_us: int) -> str:
    """Return an RFC 5424 time stamp: local, with its offset."""
    second, microsecond = divmod(epoch_us, MICROSECONDS)
    moment = datetime.fromtimestamp(second, ZONE).replace(microsecond=microsecond)
    return moment.isoformat(timespec="microseconds")


def local_day(epoch_s: int) -> str:
    """Return the local date as ``YYYYMMDD``, the name of a daily log file."""
    return datetime.fromtimestamp(epoch_s, ZONE).strftime("%Y%m%d")


def utc_name(epoch_s: int) -> str:
    """Return a UTC time for a file name: ``20170706T135255Z``."""
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y%m%dT%H%M%SZ")


def iso(epoch_s: float) -> str:
    """Return a UTC time for the truth file."""
    return datetime.fromtimestamp(epoch_s, UTC).isoformat()
