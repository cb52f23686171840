"""Streams of agents: ``manage.py streams list|discard|release``."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.core.management.base import CommandError, CommandParser

from ioportal.ingest import senders, stream_discards
from ioportal.ingest.models import Stream
from ioportal.site.models import Source
from ioportal.telemetry import commands

_BY = "manage.py"


class Command(commands.Command):
    """Lists streams, discards one, or lets a second agent take over."""

    help = (
        "List the streams of agents, remove the data of a wrong one, or let the waiting agent of a "
        "source take over (see docs/operations.md)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        actions = parser.add_subparsers(dest="action", required=True)
        listing = actions.add_parser("list", help="print the streams, latest first")
        listing.add_argument("--source", help="of this source only")
        discard = actions.add_parser("discard", help="remove a stream and its data")
        discard.add_argument("stream", type=UUID, help="as printed by list")
        discard.add_argument("--yes", action="store_true", help="discard; there is no way back")
        discard.add_argument("--reason", default="", help="for the record")
        release = actions.add_parser("release", help="let the waiting agent of a source take over")
        release.add_argument("source")

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002  (Django's signature)
        """Run the subcommand."""
        {"list": self._list, "discard": self._discard, "release": self._release}[options["action"]](
            options
        )

    def _list(self, options: dict[str, Any]) -> None:
        streams = Stream.objects.select_related("source")
        if options["source"]:
            streams = streams.filter(source__name=options["source"])
        for stream in streams.iterator():
            discarded = f"  discarded {stream.discarded_at:%F %T}" if stream.discarded_at else ""
            self.stdout.write(
                f"{stream.stream}  {stream.source}  {senders.host_name(stream.host)}  "
                f"{stream.started_at:%F %T} to {stream.latest_at:%F %T}{discarded}"
            )

    def _discard(self, options: dict[str, Any]) -> None:
        stream = Stream.objects.select_related("source").filter(stream=options["stream"]).first()
        if stream is None:
            raise CommandError(f"There is no stream {options['stream']}.")
        if not options["yes"]:
            raise CommandError(
                f"Nothing was changed. Add --yes to discard the data that "
                f"{senders.host_name(stream.host)} sent for {stream.source} from "
                f"{stream.started_at:%F %T} to {stream.latest_at:%F %T} UTC."
            )
        try:
            stream_discards.discard(stream, _BY, options["reason"][:200])
        except stream_discards.Invalid as error:
            raise CommandError(str(error)) from error
        self.stdout.write("Discarded. The worker deletes its rows. Revoke the token if it leaked.")

    def _release(self, options: dict[str, Any]) -> None:
        source = Source.objects.filter(name=options["source"]).first()
        host = source and senders.release(source, _BY)
        if not host:
            raise CommandError(f"No second agent waits for source {options['source']!r}.")
        self.stdout.write(f"The agent on {host} takes over with its next attempt.")
