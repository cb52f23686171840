"""Reading the database as of one moment."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.db import connection, transaction

if TYPE_CHECKING:
    from collections.abc import Iterator

_ISOLATE = "SELECT set_config('default_transaction_isolation', %s, false)"


@contextmanager
def snapshot() -> Iterator[None]:
    """Let all statements of a transaction see what was committed before its first one."""
    with connection.cursor() as cursor:
        # The default of the next transaction: the level of a running one can no longer change.
        cursor.execute(_ISOLATE, ["repeatable read"])
        try:
            with transaction.atomic():
                yield
        finally:
            cursor.execute(_ISOLATE, ["read committed"])
