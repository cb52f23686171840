"""Carry the data of an earlier version over: ``manage.py carry_over``."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError
from django.db import connection

from ioportal.core.postgres.earlier import NotCarriedOver, carry_over
from ioportal.telemetry import commands


class Command(commands.Command):
    """Gives the tables of an earlier version their names of today."""

    help = (
        "Carry a database of 0.1.0 over to this version, in one transaction. Stop the portal and "
        "back the database up before it, and run “manage.py migrate” after it."
    )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002  (Django's signature)
        """Carry the data over."""
        try:
            version = carry_over(connection)
        except NotCarriedOver as reason:
            raise CommandError(str(reason)) from reason
        self.stdout.write(f"Carried over from {version}. Now run “manage.py migrate”.")
