"""Register a site from a TOML file: ``manage.py register site.toml``."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from ioportal.jobs.registration import Unusable, register


class Command(BaseCommand):
    """Registers clusters, NIDs, filesystems, servers and targets."""

    help = (
        "Register clusters, NIDs, filesystems, servers and targets from a TOML file (an example is "
        "in docs/operations.md). What is registered already is brought up to date."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("file", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002  (Django's signature)
        """Register, and have what is stored charged anew."""
        path: Path = options["file"]
        try:
            document = tomllib.loads(path.read_text())
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise CommandError(f"{path}: {error}") from error
        try:
            done = register(document)
        except Unusable as error:
            raise CommandError(f"{path}: {error} Nothing was registered.") from error
        for line in done:
            self.stdout.write(line)
