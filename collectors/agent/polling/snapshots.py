"""Polls totals that the portal subtracts itself."""

from collections.abc import Generator, Sequence
from datetime import UTC, datetime
from typing import Any

from collectors.agent.delivery.batches import Coverage, batches
from collectors.agent.polling import commands
from collectors.agent.reader import Reading
from collectors.formats import Format, Origin
from collectors.parsed import Parsed, SourceUnavailable
from collectors.source import Source


class SnapshotReader:
    """Reads what a command shows, all of it each time; a poll covers its moment."""

    def __init__(self, command: Sequence[str], timeout_s: float, form: Format) -> None:
        self._command = command
        self._timeout_s = timeout_s
        self._format = form

    def read(self, place: dict[str, Any]) -> Generator[Reading]:  # noqa: ARG002  (nothing goes on)
        """Poll once."""
        with commands.output(self._command, self._timeout_s) as printed:
            source = Source(printed, self._command[0])
            parsed = Parsed.joined(self._format.table, self._format.parse(source, Origin()))
        if not parsed.account.accepted:
            raise SourceUnavailable("the command printed no counters")
        now = datetime.now(UTC)
        yield Reading(list(batches(self._format.table, [parsed], [Coverage("", now, now)])), {})

    def behind_bytes(self) -> int:
        """Return 0: a poll reads all there is."""
        return 0

    def close(self) -> None:
        """Do nothing: nothing stays open."""
