"""Times on command lines and in URLs."""

from argparse import ArgumentTypeError
from datetime import UTC, datetime, timedelta

from django.utils import timezone
from django.utils.dateparse import parse_datetime

RECENT = {  # values of the parameter `last` in URLs
    "15m": timedelta(minutes=15),
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
    "90d": timedelta(days=90),
    "1y": timedelta(days=365),
}
ALL = "all"  # another value of `last`: any time
_CURRENT_FOR = timedelta(minutes=2)  # two intervals of a source that is polled each minute


def is_current(until: datetime, now: datetime | None = None) -> bool:
    """Return whether data until a time still says something about now."""
    return (now or timezone.now()) - until <= _CURRENT_FOR


def moment(text: str) -> datetime:
    """Parse a time with a zone; the error shows the format."""
    try:
        value = parse_datetime(text)
        if value and value.tzinfo:
            return value.astimezone(UTC)
    except (ValueError, OverflowError):
        pass  # a month 13, or a time outside the calendar
    raise ArgumentTypeError(f"{text!r} is not a time with a zone, like 2017-07-06T13:52:55Z")
