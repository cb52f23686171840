"""Whether the stages, or the disk, are too far behind to take more."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass

from django.conf import settings

from ioportal.ingest.models import TouchedDeltas, TouchedJob, TouchedTrace
from ioportal.telemetry import storage

_FREE_BYTES = 1 << 30  # on the disk that uploads are kept on while they are read
_RETRY_S = 30


@dataclass(frozen=True)
class Overload:
    """Why nothing more is taken, and when to ask again."""

    reason: str
    retry_after_s: int = _RETRY_S


def overload() -> Overload | None:
    """Tell whether to wait; None: more can come."""
    if full := database_full():
        return full
    free = shutil.disk_usage(tempfile.gettempdir()).free
    if free < _FREE_BYTES:
        return Overload(f"The portal's disk for uploads has {free >> 20:,} MiB left.")
    limit = settings.PENDING_LIMIT
    for pending in (TouchedTrace, TouchedDeltas, TouchedJob):
        if pending.objects.order_by()[: limit + 1].count() > limit:
            return Overload(f"More than {limit:,} pieces of work wait to be charged.")
    return None


def database_full() -> Overload | None:
    """Report that the database's disk has no room for more data; None: it has, or is not visible.

    PostgreSQL cannot even start on a full disk, so that data is refused well before.
    """
    free, required = storage.free_bytes(), settings.DATABASE_FREE_BYTES
    if free is None or free >= required:
        return None
    return Overload(
        f"The database's disk has {free / 1e6:,.0f} MB free; "
        f"ingest stops below {required / 1e6:,.0f} MB (IOPORTAL_DATABASE_FREE). "
        "Free space on that disk, or shorten retention."
    )
