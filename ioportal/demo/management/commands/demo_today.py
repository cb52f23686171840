"""Load the hours before now: ``manage.py demo_today``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ioportal.demo import centre, loading, log_in, mitigations, stages
from ioportal.telemetry import commands

if TYPE_CHECKING:
    from django.core.management.base import CommandParser


class Command(commands.Command):
    """Registers the simulated centre and loads its latest hours."""

    help = (
        "Register the simulated centre, load the logs of its latest hours through the collectors, "
        "and create the log-in. `make serve` continues the centre and loads its past year."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("--seed", type=int, default=1, help="seed of the simulation (1)")

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002  (Django's signature)
        """Simulate, register, load and compute; repeating it changes nothing."""
        centre.simulate("past", "--seed", str(options["seed"]), "--out", str(centre.TODAY))
        centre.register()
        if centre.PAST.exists():
            for step in loading.of_today():
                step.load()
            stages.run_all()
            centre.remove_past()
        log_in.create()
        centre.send_mails_at_once()
        mitigations.log()
