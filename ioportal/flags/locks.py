"""Advisory lock of flag creation."""

from __future__ import annotations

from django.db import connection

_FLAG_CREATION = 7_311  # unique among the project's advisory locks


def lock_flag_creation() -> None:
    """Allow only this transaction to create flags until it ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_FLAG_CREATION])
