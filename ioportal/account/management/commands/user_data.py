"""Export or remove the stored data of a user: ``manage.py user_data export|remove NAME``."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.core.serializers.json import DjangoJSONEncoder

from ioportal.account import user_data
from ioportal.telemetry import commands


class Command(commands.Command):
    """Exports or removes what the portal holds about a user."""

    help = (
        "Print what the portal holds about a user as JSON, or replace the user by a pseudonym "
        "(see docs/operations.md)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        actions = parser.add_subparsers(dest="action", required=True)
        export = actions.add_parser("export", help="print what is held, as JSON")
        remove = actions.add_parser("remove", help="replace the user by a pseudonym")
        for action in (export, remove):
            action.add_argument("name", help="user name in accounting and of the log-in")
        remove.add_argument("--yes", action="store_true", help="remove; there is no way back")
        remove.add_argument("--reason", default="", help="for the record")

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002  (Django's signature)
        """Run the subcommand."""
        name = options["name"]
        rows = user_data.counts(name)
        if not rows:
            raise CommandError(f"Nothing is held about {name!r}.")
        if options["action"] == "export":
            held = user_data.export(name)
            self.stdout.write(json.dumps(held, cls=DjangoJSONEncoder, indent=1))
        elif options["yes"]:
            removal = user_data.remove(name, options["reason"][:200])
            self.stdout.write(f"Removed. Jobs remain under the name {removal.pseudonym}.")
        else:
            for place, count in rows.items():
                self.stdout.write(f"{count:>10,}  {place}")
            raise CommandError("Nothing was changed. Add --yes to remove the user.")
