"""Databases from before the tables got the names of their apps: refused, or carried over."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from django.core import checks
from django.db import transaction
from django.db.migrations.recorder import MigrationRecorder

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

_LABELS = {"activity", "flags", "studies"}  # of that time
# The last migrations of 0.1.0.
_RELEASE = {
    ("account", "0001_removal"),
    ("activity", "0001_initial"),
    ("alerts", "0009_effects"),
    ("api", "0005_experiments"),
    ("flags", "0014_answers"),
    ("ingest", "0021_experiments"),
    ("jobs", "0022_modified"),
    ("site", "0005_nfs_servers"),
    ("studies", "0005_arm_positions"),
    ("telemetry", "0023_first_polls"),
    ("throttling", "0001_initial"),
}
_MIGRATION = re.compile(r"^-- migration (\w+) (\w+)$|^-- after them$", re.MULTILINE)


class NotCarriedOver(Exception):  # noqa: N818  (not an error of the program)
    """The reason why a database cannot be carried over, with the remedy."""


def check(connection: BaseDatabaseWrapper) -> list[checks.CheckMessage]:
    """Return an error if the tables have their earlier names."""
    if not _is_earlier(applied := _applied(connection)):
        return []
    return [
        checks.Error(
            f"The database is from {_version(applied)}, whose tables have other names.",
            hint=_remedy(applied),
            id="ioportal.E002",
        )
    ]


def carry_over(connection: BaseDatabaseWrapper) -> str:
    """Convert tables of an earlier version for the first migrations; return the version's name.

    Raises:
        NotCarriedOver: the database is older than 0.1.0, or not of an earlier version.
    """
    with transaction.atomic(connection.alias), connection.cursor() as cursor:
        applied = _applied(connection)
        if not _is_earlier(applied):
            raise NotCarriedOver(
                "The tables have the names of this version, or there are none. Run “manage.py "
                "migrate”."
            )
        if not applied >= _RELEASE:
            raise NotCarriedOver(_remedy(applied))
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # tables with pending checks cannot change
        for statements in _statements(applied):
            cursor.execute(statements)
    return _version(applied)


def _applied(connection: BaseDatabaseWrapper) -> set[tuple[str, str]]:
    return set(MigrationRecorder(connection).applied_migrations())


def _is_earlier(applied: set[tuple[str, str]]) -> bool:
    return not _LABELS.isdisjoint(app for app, _ in applied)


def _version(applied: set[tuple[str, str]]) -> str:
    if not applied >= _RELEASE:
        return "a version before 0.1.0"
    return "0.1.0" if ("flags", "0015_observations") not in applied else "a version after 0.1.0"


def _remedy(applied: set[tuple[str, str]]) -> str:
    if applied >= _RELEASE:
        return "Stop the portal, back the database up, and run “manage.py carry_over”."
    return "Run the migrations of 0.1.0, with its program. Then carry it over with this version."


def _statements(applied: set[tuple[str, str]]) -> list[str]:
    """Return the statements of the migrations that are not applied, and those after them."""
    script = Path(__file__).with_name("carry_over.sql").read_text(encoding="utf-8")
    _, *parts = _MIGRATION.split(script)
    return [
        text
        for app, name, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
        if (app, name) not in applied
    ]
