"""Run stages until no pending rows are left, and record their failures."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import structlog
from django.db import Error, connection

from ioportal.postgres.advisory_locks import Lock
from ioportal.telemetry.models import StageFailure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

log = structlog.get_logger()


def drain(stage: Callable[[], int]) -> None:
    """Run a stage until no pending rows are left."""
    while stage():
        pass


def drain_alone(name: str, stage: Callable[[], int]) -> None:
    """Run a stage until no pending rows are left, unless another worker runs it.

    Each stage runs on one worker at a time; others skip it.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, hashtext(%s))", [Lock.STAGE, name])
        if cursor.fetchone() != (True,):
            return
        try:
            with failures_recorded(name):
                drain(stage)
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s, hashtext(%s))", [Lock.STAGE, name])


@contextmanager
def failures_recorded(stage: str) -> Iterator[None]:
    """Record a failed run of a stage for the health page; a successful run removes the record."""
    try:
        yield
    except Exception as error:
        try:
            StageFailure.objects.record(stage, error)
        except Error as unrecorded:  # most likely the database itself is away
            log.warning("stage_failure_not_recorded", stage=stage, error=str(unrecorded))
        raise
    StageFailure.objects.filter(stage=stage).delete()
