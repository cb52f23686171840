"""Load the whole demo: ``manage.py demo_data``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from django.core.management import call_command

from ioportal.demo import log_in, stages
from ioportal.telemetry import commands

if TYPE_CHECKING:
    from django.core.management.base import CommandParser


class Command(commands.Command):
    """Loads the simulated centre without serving it."""

    help = (
        "Register the simulated centre, load its latest hours and its past year through the "
        "collectors, and evaluate them. Loaded files are skipped."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("--seed", type=int, default=1, help="seed of the simulation (1)")

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002  (Django's signature)
        """Load, compute, and print the log-in."""
        begun = time.monotonic()
        for command in ("demo_today", "demo_year"):
            call_command(command, seed=options["seed"], stdout=self.stdout, stderr=self.stderr)
        stages.run_all()
        passwords = log_in.create()
        self.stdout.write(f"Loaded in {time.monotonic() - begun:.0f} s")
        for name, password in passwords.items():
            self.stdout.write(f"Log in as {name} with the password {password}")
