"""Locks between loads: who decides by what is stored waits for those who are changing it."""

from __future__ import annotations

from django.db import connection

_ACCOUNTING = 7_303  # any number that no other advisory lock uses


def accounting() -> None:
    """Let one transaction at a time, until it ends, say what jobs are and what ran inside them."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_ACCOUNTING])
