"""Load the past year: ``manage.py demo_year``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from django.db import connection

from ioportal.demo import centre, experiments, loading
from ioportal.demo.progress import Progress
from ioportal.telemetry import commands

if TYPE_CHECKING:
    from django.core.management.base import CommandParser

_NICENESS = 10


class Command(commands.Command):
    """Loads the simulated centre's past year while the portal is served."""

    help = (
        "Simulate a year of the demo's centre that ends yesterday, and load its logs through the "
        "collectors, the latest month first. Files that are loaded already are skipped. The worker "
        "evaluates them."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("--seed", type=int, default=1, help="seed of the simulation (1)")

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002  (Django's signature)
        """Simulate and load, unless it was completed before."""
        if centre.is_year_loaded():
            return
        os.nice(_NICENESS)  # pages and live data come first
        with Progress("Simulating a year before loading it") as progress:
            experiments.load()
            centre.write_year(options["seed"])
            connection.close()  # the database may have ended it meanwhile, because it was idle
            steps = list(loading.of_year())
            progress.begin("Loading the simulated year", sum(step.cost for step in steps))
            for step in steps:
                step.load()
                progress.done += step.cost
        centre.mark_year_loaded()
