"""Send waiting mails now: ``manage.py send_mails``."""

from __future__ import annotations

from typing import Any

from ioportal.alerts import tasks
from ioportal.telemetry import commands


class Command(commands.Command):
    """Does what the worker does every few seconds."""

    help = "Send the mails that are waiting, unless a worker does so now."

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002  (Django's signature)
        """Send due mails once."""
        tasks.send_mails()
