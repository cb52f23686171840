"""Register a site from a file: ``manage.py register site.toml``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from ioportal.site.document_keys import InvalidDocument
from ioportal.site.registration import register
from ioportal.site.registration_tables import Table, document
from ioportal.telemetry import commands


class Command(commands.Command):
    """Registers clusters, NIDs, filesystems, servers, targets, users and projects."""

    help = (
        "Register clusters, NIDs, filesystems, servers, targets, users and projects from a TOML "
        "file, or NIDs, nodes, users or projects from a table (see docs/operations.md). Existing "
        "entries are updated."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("file", type=Path)
        parser.add_argument(
            "--table",
            choices=Table.values,
            default=Table.SITE.value,
            help="content of the file (default: a site, in TOML)",
        )
        parser.add_argument("--cluster", default="", help="cluster of the NIDs or nodes")

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002  (Django's signature)
        """Register the file; existing data is attributed again."""
        path: Path = options["file"]
        try:
            text = path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"{path}: {error}") from error
        try:
            entries = register(document(Table(options["table"]), text, options["cluster"]))
        except InvalidDocument as error:
            raise CommandError(f"{path}: {error} Nothing was registered.") from error
        for entry in entries:
            self.stdout.write(entry)
