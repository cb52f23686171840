"""Polling of a command that exports records: new and changed records."""

from collections.abc import Generator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from collectors.agent.delivery.batches import batches
from collectors.agent.polling import commands
from collectors.agent.polling.frame_store import FrameStore
from collectors.agent.reader import Reading
from collectors.format import Format, Origin
from collectors.parsed import Account, Parsed
from collectors.source import Source

SINCE = "{since}"  # in a command: start of the requested records, in the source's time zone


class ExportReader:
    """Polls records with a command.

    Polls overlap, because records change. The checkpoint has the start of the last poll (`begun`),
    and in a `frame` the hashes of its rows, which are not shipped again.
    """

    def __init__(
        self,
        folder: Path,
        command: Sequence[str],
        form: Format,
        origin: Origin,
        *,
        timeout_s: float,
        look_back_s: float,
    ) -> None:
        self._command = command
        self._timeout_s = timeout_s
        self._look_back = timedelta(seconds=look_back_s)
        self._format = form
        self._origin = origin
        self._frames = FrameStore(folder)

    def read(self, checkpoint: dict[str, Any]) -> Generator[Reading]:
        """Poll once."""
        previous = self._frames.load(checkpoint)
        begun = datetime.now(UTC)
        last = datetime.fromisoformat(checkpoint.get("begun", begun.isoformat()))
        since = last - self._look_back
        command = [word.replace(SINCE, self._local(since)) for word in self._command]
        with commands.output(command, self._timeout_s) as printed:
            source = Source(printed, self._command[0])
            parsed = Parsed.joined(self._format.table, self._format.parse(source, self._origin))
        rows = parsed.table.drop("line").hash_rows()
        if previous is not None:
            parsed = _only(parsed, ~rows.is_in(previous["row"].implode()))
        following = {
            "begun": begun.isoformat(),
            "frame": self._frames.save(rows.unique().to_frame("row"), checkpoint),
        }
        yield Reading(list(batches(self._format.table, [parsed])), following)

    def behind_bytes(self) -> int:
        """Return 0: a poll reads everything."""
        return 0

    def close(self) -> None:
        """Do nothing: no file stays open."""

    def _local(self, moment: datetime) -> str:
        return f"{moment.astimezone(self._origin.zone):%Y-%m-%dT%H:%M:%S}"


def _only(parsed: Parsed, is_new: pl.Series) -> Parsed:
    """Keep the new rows only; count the others as irrelevant."""
    new = parsed.table.filter(is_new)
    repeated = parsed.table.height - new.height
    account = parsed.account + Account(accepted=-repeated, irrelevant=repeated)
    return replace(parsed, table=new, account=account)
