"""A check of the portal's role: it owns its database, and is no superuser."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core import checks

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

_SUPERUSER = "SELECT current_user::text FROM pg_roles WHERE rolname = current_user AND rolsuper"
_REMEDY = (
    "Whoever takes over the portal could run programs on the database's host. Restore a back-up "
    "into a database owned by another role (docs/operations.md, Database roles)."
)


def check(connection: BaseDatabaseWrapper) -> list[checks.CheckMessage]:
    """Return a warning if the database is used as a superuser."""
    with connection.cursor() as cursor:
        cursor.execute(_SUPERUSER)
        names = [name for (name,) in cursor.fetchall()]
    return [
        checks.Warning(f"The role {name} is a superuser.", hint=_REMEDY, id="ioportal.W001")
        for name in names
    ]
