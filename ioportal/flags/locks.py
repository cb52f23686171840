"""The lock of judging: who opens flags waits for others who do."""

from __future__ import annotations

from django.db import connection

_OPENING = 7_311  # any number that no other advisory lock uses


def opening() -> None:
    """Let one transaction at a time, until it ends, open flags."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_OPENING])
