"""The checks of a database, by `manage.py migrate` and `check --database default`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.backends.base.validation import BaseDatabaseValidation

from ioportal.core.postgres import drift, earlier, roles

if TYPE_CHECKING:
    from django.core.checks import CheckMessage


class Validation(BaseDatabaseValidation):
    """Checks that the database has what the models declare, and belongs to a safe role."""

    def check(self, **_: Any) -> list[CheckMessage]:
        """Return errors and warnings."""
        checks = (earlier.check, drift.check, roles.check)
        return [message for check in checks for message in check(self.connection)]
