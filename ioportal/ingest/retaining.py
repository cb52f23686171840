"""The retention stage: drops what was kept long enough, once nothing waits for it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import structlog
from django.conf import settings
from django.db import connection, transaction
from django.db.models import Min

from ioportal.ingest import charging
from ioportal.ingest.models import TouchedDeltas, TouchedReads, TouchedTrace
from ioportal.jobs import incidents
from ioportal.stages import drain
from ioportal.telemetry import levels, retention, rollups

if TYPE_CHECKING:
    from django.db.models import Model

    from ioportal.telemetry.levels import Level

log = structlog.get_logger()

_RETENTION_LOCK = 7_306  # any number that no other advisory lock uses
_CHARGED_FROM: dict[str, type[Model]] = {
    levels.RPC_WINDOWS.table: TouchedTrace,
    levels.JOB_SNAPSHOTS.table: TouchedReads,
    levels.JOB_DELTAS.table: TouchedDeltas,
}


def retain(now: datetime | None = None) -> None:
    """Drop chunks that every stage is done with; compress older ones where that is allowed.

    Safe to run twice and beside itself.
    """
    now = now or datetime.now(UTC)
    drain(charging.charge_pending)
    drain(rollups.roll_up)
    for level in levels.LEVELS:
        if level.kept is not None:
            _drop(level, now - level.kept)
    if retention.licence() == "timescale":
        for level in levels.LEVELS:
            with transaction.atomic():
                compressed = retention.compress_old(level, now - settings.COMPRESSED_AFTER)
            if compressed:
                log.info("chunks_compressed", table=level.table, chunks=compressed)


def _drop(level: Level, before: datetime) -> None:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_RETENTION_LOCK])
        # Charging and rolling up wait: what they read must not go meanwhile.
        charging.lock()
        rollups.lock()
        going = retention.old_chunks(level, before, _needed_from(level))
        if level is levels.CHARGED_RPCS:
            incidents.remember(going)
        retention.drop(level, going)
    if going:
        log.info("chunks_dropped", table=level.table, chunks=len(going), until=going[-1].end)


def _needed_from(level: Level) -> datetime | None:
    """Return from when on a stage has still to read rows of a level."""
    waiting = _CHARGED_FROM.get(level.table)
    if waiting is None:
        return rollups.pending_since(level)
    first: datetime | None = waiting._default_manager.aggregate(first=Min("start"))["first"]  # noqa: SLF001  (documented)
    return first
