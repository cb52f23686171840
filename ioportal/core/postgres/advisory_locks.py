"""The advisory locks of the portal; their numbers are unique in the database."""

from __future__ import annotations

from datetime import timedelta
from enum import IntEnum

from django.db import OperationalError, connection
from psycopg.errors import LockNotAvailable

_SOON = "2s"
SUSPENDED_AFTER = timedelta(minutes=5)  # as of sessions that are idle in a transaction
# The limits of idle sessions do not end one whose process does not read a result. (Others that do
# not read, such as backups, hold no lock.)
_END_SUSPENDED = """
SELECT pg_terminate_backend(a.pid) FROM pg_stat_activity a
WHERE a.datname = current_database() AND a.usename = current_user
    AND a.state = 'active' AND a.wait_event = 'ClientWrite'
    AND a.query_start < clock_timestamp() - %s * interval '1 second'
    AND EXISTS (
        SELECT FROM pg_locks l WHERE l.pid = a.pid AND l.locktype = 'advisory' AND l.granted
    )
"""


class Lock(IntEnum):
    """Work that one transaction or worker does at a time."""

    NAMES = 7_301  # addition of names
    ATTRIBUTION = 7_302
    ACCOUNTING = 7_303  # writes to jobs and PanDA jobs
    STATISTICS = 7_304
    ROLL_UP = 7_305
    RETENTION = 7_306
    STAGE = 7_310  # the second key is the stage
    FLAG_CREATION = 7_311
    ALERTS = 7_312
    EXPERIMENTS = 7_313  # addition of experiments
    QUOTAS = 7_314  # addition of files to experiments


class Busy(Exception):  # noqa: N818  (a result)
    """Another transaction still holds a lock."""


def hold(lock: Lock) -> None:
    """Wait for other transactions that hold a lock, and hold it until this one ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [lock])


def try_hold(lock: Lock) -> bool:
    """Hold a lock as `hold` does if no other transaction holds it; return whether it is held."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [lock])
        (is_held,) = cursor.fetchone()
    return bool(is_held)


def hold_part(lock: Lock, part: int) -> None:
    """Hold a part of a lock as `hold` does: beside other parts, never beside the whole."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock_shared(%s)", [lock])
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [lock, part])


def try_hold_part(lock: Lock, part: int) -> bool:
    """Hold a part of a lock if no other transaction holds it; return whether it is held."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_try_advisory_xact_lock_shared(%s) AND pg_try_advisory_xact_lock(%s, %s)",
            [lock, lock, part],
        )
        (is_held,) = cursor.fetchone()
    if not is_held:
        end_suspended()
    return bool(is_held)


def hold_soon(lock: Lock) -> None:
    """Hold a lock as `hold` does, within a time that a person waits for a page.

    Raises:
        Busy: another transaction held it for longer.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [_SOON])
        try:
            hold(lock)
        except OperationalError as error:
            if is_timeout(error):
                raise Busy from error
            raise
        cursor.execute("SET LOCAL lock_timeout TO DEFAULT")


def end_suspended(after: timedelta = SUSPENDED_AFTER) -> int:
    """End the sessions of suspended processes that hold locks; return their number.

    Args:
        after: since the statement began whose result the process does not read.
    """
    with connection.cursor() as cursor:
        cursor.execute(_END_SUSPENDED, [after.total_seconds()])
        return len(cursor.fetchall())


def is_timeout(error: Exception) -> bool:
    """Return whether an error is the end of a wait for a lock."""
    return isinstance(error.__cause__, LockNotAvailable)
