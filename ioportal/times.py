"""Times as people give them on a command line or in an address."""

from argparse import ArgumentTypeError
from datetime import UTC, datetime

from django.utils.dateparse import parse_datetime


def moment(text: str) -> datetime:
    """Read a time with its zone; the error says how to write one."""
    try:
        value = parse_datetime(text)
        if value and value.tzinfo:
            return value.astimezone(UTC)
    except (ValueError, OverflowError):
        pass  # a month 13, or a moment outside the calendar
    raise ArgumentTypeError(f"{text!r} is not a time with its zone, like 2017-07-06T13:52:55Z")
