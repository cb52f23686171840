"""Stages claim pending rows; this runs one until there are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connection

if TYPE_CHECKING:
    from collections.abc import Callable

_WORKERS_LOCK = 7_310  # any number that no other advisory lock uses; the second is the stage's


def drain(stage: Callable[[], int]) -> None:
    """Run a stage until it finds nothing to do."""
    while stage():
        pass


def drain_alone(stage: Callable[[], int]) -> None:
    """Run a stage until it finds nothing to do, unless another worker does.

    That one goes on until it finds nothing: there is no need to wait for it, and other work to do.
    """
    name = f"{stage.__module__}.{stage.__qualname__}"
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, hashtext(%s))", [_WORKERS_LOCK, name])
        if cursor.fetchone() != (True,):
            return
        try:
            drain(stage)
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s, hashtext(%s))", [_WORKERS_LOCK, name])
