"""Polls a command that exports records, and tells those that are new or have changed."""

from collections.abc import Generator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from collectors.agent import commands
from collectors.agent.batches import batches
from collectors.agent.kept import KeptFrame
from collectors.agent.readers import Reading
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
        self._frame = KeptFrame(folder)

    def read(self, place: dict[str, Any]) -> Generator[Reading]:
        """Poll once."""
        known = self._frame.load(place)
        begun = datetime.now(UTC)
        since = datetime.fromisoformat(place.get("begun", begun.isoformat())) - self._look_back
        command = [word.replace(SINCE, self._local(since)) for word in self._command]
        with commands.output(command, self._timeout_s) as printed:
            source = Source(printed, self._command[0])
            parts = list(self._format.parse(source, self._origin))
        rows = pl.concat([self._format.table.empty(), *(part.table for part in parts)])
        hashes = rows.drop("line").hash_rows().alias("hash")
        news = [_without(part, known) for part in parts]
        following = {
            "begun": begun.isoformat(),
            "frame": self._frame.save(hashes.unique().to_frame(), place),
        }
        yield Reading(list(batches(self._format.table.name, news, ())) if news else [], following)

    def behind_bytes(self) -> int:
        """Return 0: a poll reads all there is."""
        return 0

    def close(self) -> None:
        """Do nothing: nothing stays open."""

    def _local(self, moment: datetime) -> str:
        return f"{moment.astimezone(self._origin.zone):%Y-%m-%dT%H:%M:%S}"


def _without(part: Parsed, known: pl.DataFrame | None) -> Parsed:
    """Return a part without rows that are known; their lines are irrelevant."""
    if known is None:
        return part
    is_new = ~part.table.drop("line").hash_rows().is_in(known["hash"].implode())
    news = part.table.filter(is_new)
    repeats = part.table.height - news.height
    return replace(
        part,
        table=news,
        account=part.account + Account(accepted=-repeats, irrelevant=repeats),
    )
