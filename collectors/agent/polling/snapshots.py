"""Polling of totals whose increments the portal computes."""

from collections.abc import Generator, Sequence
from datetime import UTC, datetime
from typing import Any

from collectors.agent.delivery.batches import Coverage, batches
from collectors.agent.polling import commands
from collectors.agent.reader import Reading
from collectors.format import Format, Origin
from collectors.parsed import Parsed, SourceUnavailable
from collectors.source import Source


class SnapshotReader:
    """Polls totals with a command; the coverage of a poll is its time."""

    def __init__(self, command: Sequence[str], timeout_s: float, form: Format) -> None:
        self._command = command
        self._timeout_s = timeout_s
        self._format = form

    def read(self, checkpoint: dict[str, Any]) -> Generator[Reading]:  # noqa: ARG002  (stateless)
        """Poll once."""
        with commands.output(self._command, self._timeout_s) as printed:
            source = Source(printed, self._command[0])
            parsed = Parsed.joined(self._format.table, self._format.parse(source, Origin()))
        if not parsed.account.accepted:
            raise SourceUnavailable("the command printed no counters")
        now = datetime.now(UTC)
        yield Reading(list(batches(self._format.table, [parsed], [Coverage("", now, now)])), {})

    def behind_bytes(self) -> int:
        """Return 0: a poll reads everything."""
        return 0

    def close(self) -> None:
        """Do nothing: no file stays open."""
