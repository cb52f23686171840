"""The checks of a database, by `manage.py migrate` and `check --database default`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.core import checks
from django.db.backends.base.validation import BaseDatabaseValidation
from django.db.migrations.executor import MigrationExecutor

from ioportal.core.postgres import earlier

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.core.checks import CheckMessage
    from django.db import models
    from django.db.backends.base.base import BaseDatabaseWrapper


class Validation(BaseDatabaseValidation):
    """Checks that the database has what the models declare, and belongs to a safe role."""

    def check(self, **_: Any) -> list[CheckMessage]:
        """Return errors and warnings."""
        checks = (earlier.check, drift, superusers)
        return [message for check in checks for message in check(self.connection)]


_REMEDY = (
    "The database was created by another version of a migration. Load its back-up into a database "
    "that this version migrated, or add the missing parts by hand."
)
_PRESENT = """
SELECT relname::text, attname::text FROM pg_attribute
JOIN pg_class c ON c.oid = attrelid AND c.relnamespace = 'public'::regnamespace
WHERE attnum > 0 AND NOT attisdropped
UNION ALL
SELECT c.relname::text, i.relname::text FROM pg_index
JOIN pg_class c ON c.oid = indrelid AND c.relnamespace = 'public'::regnamespace
JOIN pg_class i ON i.oid = indexrelid
UNION ALL
SELECT c.relname::text, conname::text FROM pg_constraint
JOIN pg_class c ON c.oid = conrelid AND c.relnamespace = 'public'::regnamespace
"""


def drift(connection: BaseDatabaseWrapper) -> list[checks.CheckMessage]:
    """Return an error if the database lacks parts of models, once all migrations ran.

    A migration that was edited after it was applied leaves such a database, and `migrate --check`
    reports nothing.
    """
    parts = ", ".join(_missing(connection))
    name = connection.alias
    error = checks.Error(f"Missing in {name!r}: {parts}.", hint=_REMEDY, id="ioportal.E001")
    return [error] if parts else []


def _missing(connection: BaseDatabaseWrapper) -> Iterator[str]:
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        return
    with connection.cursor() as cursor:
        cursor.execute(_PRESENT)
        present = set(cursor.fetchall())
    tables = {table for table, _ in present}
    for model in apps.get_models(include_auto_created=True):
        table = model._meta.db_table  # noqa: SLF001  (Django's documented meta API)
        if table not in tables:
            yield f"table {table}"
            continue
        for kind, name in _parts(model):
            if (table, name) not in present:
                yield f"{kind} {name} of table {table}"


def _parts(model: type[models.Model]) -> Iterator[tuple[str, str]]:
    """Yield the kind and name of each column, index and constraint of a model."""
    meta = model._meta  # noqa: SLF001  (Django's documented meta API)
    for field in meta.local_concrete_fields:
        yield "column", field.column or field.name
    for index in meta.indexes:
        yield "index", index.name
    for constraint in meta.constraints:
        yield "constraint", constraint.name


_SUPERUSER = "SELECT current_user::text FROM pg_roles WHERE rolname = current_user AND rolsuper"
_ROLE_REMEDY = (
    "Whoever takes over the portal could run programs on the database's host. Restore a back-up "
    "into a database owned by another role (docs/operations.md, Database roles)."
)


def superusers(connection: BaseDatabaseWrapper) -> list[checks.CheckMessage]:
    """Return a warning if the database is used as a superuser."""
    with connection.cursor() as cursor:
        cursor.execute(_SUPERUSER)
        names = [name for (name,) in cursor.fetchall()]
    return [
        checks.Warning(f"The role {name} is a superuser.", hint=_ROLE_REMEDY, id="ioportal.W001")
        for name in names
    ]
