"""Parameters for PostgreSQL's planner where statistics are missing."""

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

    The planner has no statistics of recent rows and expects few rows: it would choose nested
    loops and sorts for millions of rows.
    """
    with connection.cursor() as cursor:
        for name, value in values.items():
            cursor.execute("SELECT set_config(%s, %s, true)", [name, value])
        yield
        # A failed statement ends the transaction and the parameters with it.
        for name in values:
            cursor.execute(sql.SQL("SET LOCAL {} TO DEFAULT").format(sql.Identifier(name)))
