"""Limits of attempts: so many at once, then one each interval.

An attempt is counted before its password is checked, and given back if that was right. Many
attempts at the same moment therefore cannot exceed a limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from math import ceil
from typing import TYPE_CHECKING

from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone
from django.utils.crypto import salted_hmac

from ioportal.throttling.models import Record

if TYPE_CHECKING:
    from datetime import datetime

_PURGED_AT_ONCE = 100

# A row expires when all of its attempts are allowed again.
_COUNT = """
INSERT INTO throttling_record AS record (key, expires_at)
SELECT * FROM unnest(%(keys)s::text[], %(first_expiries)s::timestamptz[])
ON CONFLICT (key) DO UPDATE
SET expires_at = greatest(record.expires_at, %(now)s) + (excluded.expires_at - %(now)s)
RETURNING key, expires_at
"""


class TooManyAttempts(Exception):  # noqa: N818  (an answer, not a fault)
    """An attempt that was refused unseen."""

    def __init__(self, wait: timedelta) -> None:
        super().__init__("Too many attempts.")
        self.retry_after_s = ceil(wait.total_seconds())


@dataclass(frozen=True)
class Limit:
    """A number of attempts at once, and the interval after which one more is allowed."""

    name: str
    attempts: int
    interval: timedelta

    def counter_for(self, *subject: str) -> Counter:
        """Return the counter of a subject."""
        return Counter(self, digest(self.name, *subject))


@dataclass(frozen=True)
class Counter:
    """The attempts of one subject."""

    limit: Limit
    key: str

    def give_back(self) -> None:
        """Undo one attempt."""
        Record.objects.filter(key=self.key).update(expires_at=F("expires_at") - self.limit.interval)

    def clear(self) -> None:
        """Undo all attempts."""
        Record.objects.filter(key=self.key).delete()


def digest(*parts: str) -> str:
    """Return the key of something that may be secret: people type passwords as user names."""
    return salted_hmac("ioportal.throttling", "\0".join(parts), algorithm="sha256").hexdigest()


def count_attempt(*counters: Counter) -> None:
    """Count an attempt on all counters, which callers give in one order (their rows are locked).

    Raises:
        TooManyAttempts: a limit is reached; nothing was counted.
    """
    now = timezone.now()
    _purge(now)
    with transaction.atomic():
        expiries = _counted(counters, now)
        wait = max(
            expiries[one.key] - now - one.limit.attempts * one.limit.interval for one in counters
        )
        if wait > timedelta(0):
            raise TooManyAttempts(wait)


def _counted(counters: tuple[Counter, ...], now: datetime) -> dict[str, datetime]:
    with connection.cursor() as cursor:
        cursor.execute(
            _COUNT,
            {
                "keys": [one.key for one in counters],
                "first_expiries": [now + one.limit.interval for one in counters],
                "now": now,
            },
        )
        return dict(cursor.fetchall())


def _purge(now: datetime) -> None:
    """Delete some expired rows; more than one attempt adds, so that their number stays small."""
    with transaction.atomic():
        expired = Record.objects.filter(expires_at__lt=now).select_for_update(skip_locked=True)
        keys = list(expired.values_list("pk", flat=True)[:_PURGED_AT_ONCE])
        Record.objects.filter(pk__in=keys).delete()
