"""Checks of the database: `manage.py check --database default`, and before each migration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.checks import CheckMessage
from django.core.checks import Warning as CheckWarning
from django.core.exceptions import ValidationError
from django.db import DatabaseError, transaction

from ioportal.site.job_id_pattern import validate_job_id_pattern
from ioportal.site.models import Filesystem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def job_id_patterns(*, databases: Sequence[str] | None = None, **_: object) -> list[CheckMessage]:
    """Report stored patterns that are invalid: all their job ids count as process names."""
    return [message for name in databases or () for message in _invalid_patterns(name)]


def _invalid_patterns(database: str) -> Iterator[CheckMessage]:
    patterns = Filesystem.objects.using(database).values_list("name", "job_id_pattern")
    try:
        with transaction.atomic(database):
            rows = list(patterns)
    except DatabaseError:  # before the first migration
        return
    for filesystem, pattern in rows:
        try:
            validate_job_id_pattern(pattern)
        except ValidationError as error:
            yield CheckWarning(
                f"filesystem {filesystem}: job_id_pattern: {error.message} No job id matches it.",
                hint="Register the filesystem with a valid pattern: stored job ids are read again.",
                id="site.W001",
            )
