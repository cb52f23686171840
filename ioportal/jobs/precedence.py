"""Precedence of duplicate records, independent of their order of arrival."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def precedence(row: Mapping[str, Any], times: Collection[str], tie_breaker: str) -> str:
    """Return a sort key of the records of one job; the record with the greatest key is stored.

    Args:
        row: a record.
        times: columns to compare, most significant first; a missing time sorts first.
        tie_breaker: decides between records of equal times.
    """
    return "".join(f"{_microseconds(row[name]):020}" for name in times) + tie_breaker


def digests(row: Mapping[str, Any], facts: Collection[str], later_facts: Collection[str]) -> str:
    """Return a tie-breaker without meaning, for records that contain the time of their change.

    Args:
        row: a record.
        facts: columns that break ties.
        later_facts: columns that agents of earlier versions do not send. A record with any of them
            precedes the same record without them.
    """
    is_complete = any(row[name] is not None for name in later_facts)
    return _digest(row, facts) + (_digest(row, later_facts) if is_complete else "")


def _digest(row: Mapping[str, Any], facts: Collection[str]) -> str:
    return hashlib.sha256("\n".join(str(row[name]) for name in facts).encode()).hexdigest()[:16]


def _microseconds(moment: datetime | None) -> int:
    return (moment - _EPOCH) // _MICROSECOND if moment else 0
