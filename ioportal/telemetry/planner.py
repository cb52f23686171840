"""What the planner of PostgreSQL is told where it cannot know better."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.db import connection
from psycopg import sql

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def settings(**values: str) -> Iterator[None]:
    """Set parameters of the database for some statements of the current transaction.

    The planner knows nothing of rows that came a moment ago, and would take millions for a few:
    then nested loops never end, and what could be hashed is sorted.
    """
    with connection.cursor() as cursor:
        for name, value in values.items():
            cursor.execute("SELECT set_config(%s, %s, true)", [name, value])
        yield
        # A statement that failed ends the transaction, and these with it.
        for name in values:
            cursor.execute(sql.SQL("SET LOCAL {} TO DEFAULT").format(sql.Identifier(name)))
