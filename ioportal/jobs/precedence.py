"""Which of several records of one thing stands, in whatever order they come."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def precedence(row: Mapping[str, Any], times: Collection[str], facts: Collection[str]) -> str:
    """Return the text that orders records of one thing: the greatest stands.

    Args:
        row: a record.
        times: its columns that decide, the first of them before the others; none is the earliest.
        facts: what tells records apart that are equal in all times. Any fixed order will do for
            these, but it must be one.
    """
    digits = "".join(f"{_microseconds(row[name]):020}" for name in times)
    told = "\n".join(str(row[name]) for name in facts)
    return digits + hashlib.sha256(told.encode()).hexdigest()[:16]


def _microseconds(moment: datetime | None) -> int:
    return (moment - _EPOCH) // _MICROSECOND if moment else 0
