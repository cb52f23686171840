"""Values as batch systems print them: whole numbers, durations, job ids."""

import re
from functools import lru_cache

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1

_SHOWN_CHARACTERS = 64
_DIGITS = 18  # as many as always fit into 64 bits
_DURATION = re.compile(
    r"(?:(?P<days>\d{1,6})-)?(?:(?:(?:(?P<more_days>\d{1,6}):)?(?P<hours>\d{1,9}):)?"
    r"(?P<minutes>\d{1,9}):)?(?P<seconds>\d{1,12}(?:\.\d{1,9})?)",
    re.ASCII,
)
_BATCH_ID = re.compile(
    r"(?P<number>\d{1,20})(?:\[(?P<index>[\d,:-]*)\]|-(?P<old_index>\d+))?(?:\..*)?", re.ASCII
)


class Unreadable(Exception):  # noqa: N818  (a result for a record, which becomes its reject)
    """A value that cannot be read; the message is the reject reason."""


def quoted(text: str) -> str:
    """Return `text` quoted for messages: short, and on a single line."""
    return repr(text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}...")


def whole_number(text: str, what: str, largest: int = INT64_MAX) -> int:
    """Return a whole number, which may be negative.

    Args:
        text: as printed.
        what: the name in messages.
        largest: the largest absolute value.

    Raises:
        Unreadable: it is not a number, or it is larger than `largest`.
    """
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS):
        raise Unreadable(f"{what} {quoted(text)} is not a whole number")
    number = int(text)
    if abs(number) > largest:
        raise Unreadable(f"{what} {text} is too large")
    return number


@lru_cache(maxsize=4096)  # time limits and short runs repeat
def duration_s(text: str, what: str) -> float:
    """Return a duration in seconds.

    Args:
        text: ``[D-]HH:MM:SS``, ``D:HH:MM:SS``, ``MM:SS`` or ``SS``; hours may exceed 24, seconds
            may have a fraction (``22:53.824`` is 22 minutes).
        what: the name in messages.

    Raises:
        Unreadable: the text has another form.

    Source: docs/formats.md, "sacct" and "PBS accounting".
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise Unreadable(f"{what} {quoted(text)} is not a duration")
    days, more_days, hours, minutes, seconds = match.groups()
    whole = (int(days or 0) + int(more_days or 0)) * 86_400
    return whole + int(hours or 0) * 3_600 + int(minutes or 0) * 60 + float(seconds)


def batch_id(text: str) -> tuple[str, str]:
    """Return a PBS or Torque job id without its server part, and the array index.

    ``123.server`` is ("123", ""), ``123[4].server`` and Torque's old ``123-4.server`` are
    ("123", "4"); the parent of an array, ``123[].server``, is ("123", "").

    Raises:
        Unreadable: the text has another form.

    Source: docs/formats.md, "PBS accounting".
    """
    match = _BATCH_ID.fullmatch(text)
    if match is None:
        raise Unreadable(f"job id {quoted(text)} is not a number with an optional index and server")
    return match["number"], match["index"] or match["old_index"] or ""
