"""Limits of attempts: a burst, then one attempt per interval.

An attempt is counted before its password is checked and given back if the password was correct.
Concurrent attempts therefore cannot exceed a limit.
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

from ioportal.core.throttling.models import Record

if TYPE_CHECKING:
    from datetime import datetime

_PURGED_PER_ATTEMPT = 100

# A row expires when all of its attempts are allowed again.
_COUNT = """
INSERT INTO throttling_record AS record (key, expires_at)
SELECT * FROM unnest(%(keys)s::text[], %(first_expiries)s::timestamptz[])
ON CONFLICT (key) DO UPDATE
SET expires_at = greatest(record.expires_at, %(now)s) + (excluded.expires_at - %(now)s)
RETURNING key, expires_at
"""


class TooManyAttempts(Exception):  # noqa: N818  (a response, not a fault)
    """An attempt that was refused without a check."""

    def __init__(self, wait: timedelta) -> None:
        super().__init__("Too many attempts.")
        self.retry_after_s = ceil(wait.total_seconds())


@dataclass(frozen=True)
class Limit:
    """The size of a burst of attempts, and the interval after which one more is allowed."""

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
    """Return a keyed digest: user names may contain passwords typed by mistake."""
    return salted_hmac("ioportal.core.throttling", "\0".join(parts), algorithm="sha256").hexdigest()


def count_attempt(*counters: Counter) -> None:
    """Count an attempt on all counters; callers pass them in one order, which avoids deadlocks.

    Raises:
        TooManyAttempts: a limit is reached; nothing was counted.
    """
    now = timezone.now()
    _purge(now)
    with transaction.atomic():
        expiries = _counted(counters, now)
        wait = max(
            expiries[counter.key] - now - counter.limit.attempts * counter.limit.interval
            for counter in counters
        )
        if wait > timedelta(0):
            raise TooManyAttempts(wait)


def _counted(counters: tuple[Counter, ...], now: datetime) -> dict[str, datetime]:
    with connection.cursor() as cursor:
        cursor.execute(
            _COUNT,
            {
                "keys": [counter.key for counter in counters],
                "first_expiries": [now + counter.limit.interval for counter in counters],
                "now": now,
            },
        )
        return dict(cursor.fetchall())


def _purge(now: datetime) -> None:
    """Delete expired rows, more per attempt than an attempt adds."""
    with transaction.atomic():
        expired = Record.objects.filter(expires_at__lt=now).select_for_update(skip_locked=True)
        keys = list(expired.values_list("pk", flat=True)[:_PURGED_PER_ATTEMPT])
        Record.objects.filter(pk__in=keys).delete()
