"""The lock that serializes loads of accounting records."""

from __future__ import annotations

from django.db import connection

_ACCOUNTING = 7_303  # unique among advisory locks


def accounting() -> None:
    """Wait for other transactions that write jobs or PanDA jobs; hold the lock until commit."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_ACCOUNTING])
