"""Backpressure: refuse data while the stages have a long backlog or a disk is full."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass

from django.conf import settings

from ioportal.ingest.models import DirtyDeltas, DirtyJob, DirtyTrace
from ioportal.telemetry import storage

_FREE_BYTES = 1 << 30  # on the disk of temporary files for uploads
_RETRY_S = 30


@dataclass(frozen=True)
class Overload:
    """The reason to refuse data, and the time until the next attempt."""

    reason: str
    retry_after_s: int = _RETRY_S


def overload() -> Overload | None:
    """Return the reason to refuse data; None: data is accepted."""
    if full := database_full():
        return full
    free = shutil.disk_usage(tempfile.gettempdir()).free
    if free < _FREE_BYTES:
        return Overload(f"The portal's disk for uploads has {free >> 20:,} MiB free.")
    limit = settings.PENDING_LIMIT
    for pending in (DirtyTrace, DirtyDeltas, DirtyJob):
        new = pending.objects.filter(has_rows=False)  # not what is only derived again
        if new.order_by()[: limit + 1].count() > limit:
            return Overload(f"More than {limit:,} dirty intervals are waiting for attribution.")
    return None


def database_full() -> Overload | None:
    """Return an overload if the database's disk is nearly full; None also if it is not visible.

    PostgreSQL cannot start on a full disk, so data is refused earlier.
    """
    free, required = storage.free_bytes(), settings.DATABASE_FREE_BYTES
    if free is None or free >= required:
        return None
    return Overload(
        f"The database's disk has {free / 1e6:,.0f} MB free; "
        f"ingest stops below {required / 1e6:,.0f} MB (IOPORTAL_DATABASE_FREE). "
        "Free space on that disk, or shorten retention."
    )
