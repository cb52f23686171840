"""The attribution stage as a task."""

import random

from celery import shared_task
from django.db import OperationalError

from ioportal.ingest import attribution_stage, stream_discards
from ioportal.telemetry.stage_runs import TURN_S, drain, failures_recorded


@shared_task(autoretry_for=(OperationalError,), retry_backoff=True)
def attribute_pending() -> bool:
    """Attribute the rows of dirty intervals for a turn; return whether rows may be left."""
    with failures_recorded("attribution"):
        return drain(_attribute, TURN_S)


def _attribute(limit: int) -> int:
    """Attribute changed jobs and a filesystem that no other worker attributes."""
    done = attribution_stage.attribute_jobs(limit) + stream_discards.delete_next(limit)
    filesystems = attribution_stage.pending_filesystems()
    random.shuffle(filesystems)  # no backlog keeps another filesystem waiting for long
    for filesystem in filesystems:
        if attributed := attribution_stage.attribute_filesystem(filesystem, limit, wait=False):
            return done + attributed
    return done
