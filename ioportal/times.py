"""Times as people give them on a command line or in an address."""

from argparse import ArgumentTypeError
from datetime import UTC, datetime

from django.utils.dateparse import parse_datetime


def moment(text: str) -> datetime:
    """Read a time with its zone; the error says how to write one."""
    try:
        value = parse_datetime(text)
    except ValueError:
        value = None
    if value is None or value.tzinfo is None:
        raise ArgumentTypeError(f"{text!r} is not a time with its zone, like 2017-07-06T13:52:55Z")
    return value.astimezone(UTC)
