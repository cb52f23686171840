"""Backpressure: refuse data while the stages have a long backlog or a disk is full."""

from __future__ import annotations

import shutil
import tempfile

from django.conf import settings

from ioportal.ingest.models import DirtyDeltas, DirtyJob, DirtyTrace
from ioportal.telemetry.free_space import Overload, database_full

_FREE_BYTES = 1 << 30  # on the disk of temporary files for uploads


def overload() -> Overload | None:
    """Return the reason to refuse data; None: data is accepted."""
    if full := database_full():
        return full
    free = shutil.disk_usage(tempfile.gettempdir()).free
    if free < _FREE_BYTES:
        return Overload(f"The portal's disk for uploads has {free >> 20:,} MiB free.")
    limit = settings.PENDING_LIMIT
    for pending in (DirtyTrace, DirtyDeltas, DirtyJob):
        new = pending.objects.filter(has_rows=False)  # without rows that are only derived again
        if new.order_by()[: limit + 1].count() > limit:
            return Overload(f"More than {limit:,} dirty intervals are waiting for attribution.")
    return None
