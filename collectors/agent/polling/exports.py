"""Polls a command that exports records, and tells those that are new or have changed."""

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
from collectors.formats import Format, Origin
from collectors.parsed import Account, Parsed
from collectors.source import Source

SINCE = "{since}"  # in a command: the time from which records are asked for, in the source's zone


class ExportReader:
    """Reads records by a command, again and again.

    Polls overlap, for records change after they were written. The place keeps when the last poll
    began, and in a frame the hashes of the rows it showed: these are not told again.
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
        self._frame = FrameStore(folder)

    def read(self, place: dict[str, Any]) -> Generator[Reading]:
        """Poll once."""
        known = self._frame.load(place)
        begun = datetime.now(UTC)
        since = datetime.fromisoformat(place.get("begun", begun.isoformat())) - self._look_back
        command = [word.replace(SINCE, self._local(since)) for word in self._command]
        with commands.output(command, self._timeout_s) as printed:
            source = Source(printed, self._command[0])
            parsed = Parsed.joined(self._format.table, self._format.parse(source, self._origin))
        rows = parsed.table.drop("line").hash_rows()
        if known is not None:
            parsed = _told(parsed, ~rows.is_in(known["row"].implode()))
        following = {
            "begun": begun.isoformat(),
            "frame": self._frame.save(rows.unique().to_frame("row"), place),
        }
        yield Reading(list(batches(self._format.table, [parsed])), following)

    def behind_bytes(self) -> int:
        """Return 0: a poll reads all there is."""
        return 0

    def close(self) -> None:
        """Do nothing: nothing stays open."""

    def _local(self, moment: datetime) -> str:
        return f"{moment.astimezone(self._origin.zone):%Y-%m-%dT%H:%M:%S}"


def _told(parsed: Parsed, is_new: pl.Series) -> Parsed:
    """Return only what is new; the lines of what is known are irrelevant."""
    news = parsed.table.filter(is_new)
    known = parsed.table.height - news.height
    account = parsed.account + Account(accepted=-known, irrelevant=known)
    return replace(parsed, table=news, account=account)
