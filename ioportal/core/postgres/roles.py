"""A check of the portal's role: it owns its database, and is no superuser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core import checks
from django.db import connections

if TYPE_CHECKING:
    from collections.abc import Sequence

_SUPERUSER = "SELECT current_user::text FROM pg_roles WHERE rolname = current_user AND rolsuper"
_REMEDY = (
    "Whoever takes over the portal could run programs on the database's host. Restore a back-up "
    "into a database owned by another role (docs/operations.md, Database roles)."
)


def check(databases: Sequence[str] | None = None, **_: Any) -> list[checks.CheckMessage]:
    """Return a warning for each database that is used as a superuser."""
    return [
        checks.Warning(f"The role {name} is a superuser.", hint=_REMEDY, id="ioportal.W001")
        for alias in databases or ()
        for name in _superusers(alias)
    ]


def _superusers(alias: str) -> list[str]:
    with connections[alias].cursor() as cursor:
        cursor.execute(_SUPERUSER)
        return [name for (name,) in cursor.fetchall()]
