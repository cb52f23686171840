"""A run of retention: drop old chunks that no stage still needs, after pending rows."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Min

from ioportal.core.postgres.advisory_locks import Lock, hold
from ioportal.ingest import attribution_stage, joined_batches
from ioportal.ingest.models import DirtyDeltas, DirtyReads, DirtyTrace
from ioportal.load import incidents
from ioportal.telemetry import levels, retention, rollups, storage
from ioportal.telemetry.stage_runs import TURN_S, drain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django.db.models import Model

    from ioportal.telemetry.levels import Level

log = structlog.get_logger()

_ATTRIBUTED_FROM: dict[str, type[Model]] = {
    levels.RPC_WINDOWS.table: DirtyTrace,
    levels.JOB_SNAPSHOTS.table: DirtyReads,
    levels.JOB_DELTAS.table: DirtyDeltas,
}


class RetentionFailed(Exception):  # noqa: N818  (the failure of a run, not one kind of error)
    """Some steps of a run failed; the others were completed."""


def retain(now: datetime | None = None) -> None:
    """Drop old chunks that no stage still needs; compress others where the licence allows it.

    Safe to run repeatedly and concurrently.

    Raises:
        RetentionFailed: some steps failed, after all others were run.
    """
    now = now or datetime.now(UTC)
    failures: list[tuple[str, Exception]] = []
    for step, run in _steps(now):
        try:
            run()
        except Exception as error:  # whatever it is, the other steps must run
            log.exception("retention_step_failed", step=step)
            failures.append((step, error))
    if failures:
        raise RetentionFailed(
            "; ".join(f"{step}: {str(error).strip()}" for step, error in failures)
        ) from failures[0][1]


def _steps(now: datetime) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the names and functions of the steps, which are independent of each other."""
    yield "attribution of pending rows", partial(drain, attribution_stage.attribute_pending, TURN_S)
    yield "roll-up of pending rows", partial(drain, rollups.roll_up, TURN_S)
    for level in levels.LEVELS:
        if level.retention is not None:
            yield f"dropping chunks of {level.table}", partial(_drop, level, now - level.retention)
    yield "joining of old batches", partial(drain, lambda _: joined_batches.join_old(now), TURN_S)
    yield "keys of dropped rows", joined_batches.forget_keys
    yield "sizes of tables", partial(storage.note_sizes, now.date())
    if retention.licence() == "timescale":
        before = now - settings.COMPRESSED_AFTER
        for level in levels.LEVELS:
            yield f"compression of {level.table}", partial(_compress, level, before)


def _drop(level: Level, before: datetime) -> None:
    with transaction.atomic():
        hold(Lock.RETENTION)
        # Attribution and roll-up must not read chunks that are being dropped.
        attribution_stage.lock()
        rollups.lock()
        expired = retention.old_chunks(level, before, _needed_from(level))
        if level in incidents.LEVELS:
            incidents.store_figures(expired)
        retention.drop(level, expired)
    if expired:
        log.info("chunks_dropped", table=level.table, chunks=len(expired), until=expired[-1].end)


def _compress(level: Level, before: datetime) -> None:
    if compressed := retention.compress_old(level, before):
        log.info("chunks_compressed", table=level.table, chunks=compressed)


def _needed_from(level: Level) -> datetime | None:
    """Return the start of the rows of a level that a stage still needs."""
    pending = _ATTRIBUTED_FROM.get(level.table)
    if pending is None:
        return rollups.pending_since(level)
    first: datetime | None = pending._default_manager.aggregate(first=Min("start"))["first"]  # noqa: SLF001  (documented)
    return first
