"""Numbers as programs print them: decimal, with an exponent, or not a number."""

import re

from collectors.batch.values import Unreadable, quoted

LARGEST = 1e15  # of any count, byte or second; a double holds it exactly
SMALLEST = 1e-12  # of any such number other than 0

_NUMBER = re.compile(r"[+-]?(?:\d{1,18}(?:\.\d{0,18})?|\.\d{1,18})(?:[eE][+-]?\d{1,2})?", re.ASCII)
_UNKNOWN = re.compile(r"[+-]?(?:nan|inf(?:inity)?)", re.IGNORECASE | re.ASCII)


def amount(text: str, what: str) -> float | None:
    """Return a non-negative number; None for ``nan`` and ``inf``: not measured.

    Args:
        text: as printed.
        what: the name in messages.

    Raises:
        Unreadable: it is not a number, is negative, or exceeds `LARGEST`.
    """
    text = text.strip()
    if _UNKNOWN.fullmatch(text):
        return None
    if not _NUMBER.fullmatch(text):
        raise Unreadable(f"{what} {quoted(text)} is not a number")
    number = float(text)
    if number < 0:
        raise Unreadable(f"{what} {text} is negative")
    if number > LARGEST:
        raise Unreadable(f"{what} {text} is too large")
    return number
