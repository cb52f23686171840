"""Times on command lines and in URLs."""

from argparse import ArgumentTypeError
from datetime import UTC, datetime

from django.utils.dateparse import parse_datetime


def moment(text: str) -> datetime:
    """Parse a time with a zone; the error shows the format."""
    try:
        value = parse_datetime(text)
        if value and value.tzinfo:
            return value.astimezone(UTC)
    except (ValueError, OverflowError):
        pass  # a month 13, or a time outside the calendar
    raise ArgumentTypeError(f"{text!r} is not a time with a zone, like 2017-07-06T13:52:55Z")
