"""Run stages in slices of seconds, and record their failures."""

from __future__ import annotations

from contextlib import contextmanager
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

import structlog
from django.db import Error, connection

from ioportal.core.postgres.advisory_locks import Lock, end_suspended, is_timeout
from ioportal.telemetry.models import StageFailure, StageRun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

log = structlog.get_logger()


_FIRST_LIMIT, _MIN_LIMIT, _MAX_LIMIT = 100, 4, 500  # rows of each kind in a slice
_SLICE_S = 1.5  # later rows wait for a slice, even if they are claimed first
TURN_S = 4.0  # of a stage on a worker, before others have their turn


def drain(stage: Callable[[int], int], turn_s: float = inf) -> bool:
    """Run a stage in slices until no pending rows are left; return whether its turn ended before.

    Args:
        stage: processes up to a number of rows, the latest data first; returns how many.
        turn_s: time after which no further slice begins.
    """
    limit = _FIRST_LIMIT
    begun = sliced = monotonic()
    while stage(limit):
        spent_s, sliced = monotonic() - sliced, monotonic()
        if sliced - begun > turn_s:
            return True
        wanted = int(limit * _SLICE_S / max(spent_s, _SLICE_S / 2))  # at most twice as many
        limit = min(max(wanted, _MIN_LIMIT), _MAX_LIMIT)
    return False


def drain_alone(
    name: str, stage: Callable[[int], int], prepare: Callable[[], None] | None = None
) -> bool:
    """Run a stage for its turn, unless another worker runs it; return whether rows may be left.

    Each stage runs on one worker at a time; others skip it. `prepare` runs once, before the slices.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, hashtext(%s))", [Lock.STAGE, name])
        if cursor.fetchone() != (True,):
            end_suspended()
            return False
        try:
            with failures_recorded(name):
                if prepare:
                    prepare()
                return drain(stage, TURN_S)
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s, hashtext(%s))", [Lock.STAGE, name])


@contextmanager
def failures_recorded(stage: str) -> Iterator[None]:
    """Record a failed run of a stage for the health page, or a successful one, which ends it."""
    try:
        yield
    except Exception as error:
        try:
            if is_timeout(error):
                end_suspended()
            StageFailure.objects.record(stage, error)
        except Error as unrecorded:  # most likely the database itself is away
            log.warning("stage_failure_not_recorded", stage=stage, error=str(unrecorded))
        raise
    StageFailure.objects.filter(stage=stage).delete()
    StageRun.objects.note(stage)
