"""The guard of the database's disk: nothing new is stored while too little space is free.

PostgreSQL cannot start on a full disk, so content is refused earlier.
"""

from __future__ import annotations

from django.conf import settings

from ioportal.telemetry import storage

_RETRY_S = 30


class Overload(Exception):  # noqa: N818  (a state of the portal, not a fault)
    """The reason to refuse content; the API, pages and commands respond to it in one place each."""

    retry_after_s = _RETRY_S


def database_full() -> Overload | None:
    """Return the reason if the database's disk is nearly full; None also if it is not visible."""
    free, required = storage.free_bytes(), settings.DATABASE_FREE_BYTES
    if free is None or free >= required:
        return None
    return Overload(
        f"The database's disk has {free / 1e6:,.0f} MB free; "
        f"nothing new is stored below {required / 1e6:,.0f} MB (IOPORTAL_DATABASE_FREE). "
        "Free space on that disk, or shorten retention. Then try again."
    )


def require_space() -> None:
    """Refuse content while the database's disk is nearly full.

    Raises:
        Overload: it is.
    """
    if full := database_full():
        raise full
