"""Test a channel: ``manage.py send_test CHANNEL``."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from ioportal.alerts import channel_messages, tasks
from ioportal.alerts.models import Channel, Notification
from ioportal.telemetry import commands


class Command(commands.Command):
    """Sends a message to a channel, through the outbox."""

    help = "Send a test message to a channel, and print the answer of its server."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("channel", help="name of the channel")

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002  (Django's signature)
        """Send the message now, unless a worker does."""
        channel = Channel.objects.filter(name=options["channel"]).first()
        if channel is None:
            names = ", ".join(Channel.objects.values_list("name", flat=True)) or "none"
            raise CommandError(f"No such channel. There are: {names}.")
        notification = channel_messages.write_test(channel)
        tasks.send_mails()
        notification.refresh_from_db()
        line = f"{notification.get_state_display()}: {notification.response or 'no answer yet'}"
        if notification.state != Notification.State.SENT:
            raise CommandError(line)
        self.stdout.write(line)
