"""Reads growing logs of records, one a line, into batches."""

from collections.abc import Callable, Generator, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from collectors.agent.delivery.batches import Coverage, batches
from collectors.agent.files.open_file import OpenFile, Place
from collectors.agent.files.tail import LogTail
from collectors.agent.reader import NotThereYet, Reading
from collectors.parsed import Parsed
from collectors.source import Chunk, Lines
from collectors.tables import Table

Kept = dict[str, Any]  # what a place in a log has besides the file


@dataclass(frozen=True)
class Part:
    """What was understood of the lines between two places of a file."""

    begin: Place
    end: Place
    parsed: list[Parsed]


@dataclass(frozen=True)
class Given:
    """Lines that come from chunks."""

    given: Iterator[Chunk]

    def chunks(self) -> Iterator[Chunk]:
        """Yield them."""
        return self.given


class LineReader:
    """Reads a log file after file, to the end of each.

    Args:
        table: what the records become.
        log: where they are.
        parse: reads them.
        chunks_at_once: so many go through the parser in one go; None: all that there are, which
            demands of the parser that its parts end where chunks end.
    """

    def __init__(
        self,
        table: Table,
        log: LogTail,
        parse: Callable[[Lines], Iterator[Parsed]],
        chunks_at_once: int | None = 1,
    ) -> None:
        self._table = table
        self._log = log
        self._parse = parse
        self._chunks_at_once = chunks_at_once

    def read(self, place: dict[str, Any]) -> Generator[Reading]:
        """Yield what there is up to the end of the log."""
        at = Place(**place["file"]) if place else None
        kept: Kept = place.get("kept", {})
        is_finished = False  # nobody writes to the file any more
        while file := self._log.find(at):
            at = begin = file.place
            for part in self._parts(file, is_finished=is_finished):
                at = part.end
                kept, coverage = self.keep(kept, part)
                yield Reading(list(batches(self._table, part.parsed, coverage)), _place(at, kept))
            if at != begin:
                is_finished = False
                continue
            following = self._log.successor(at)
            if following is None:
                return
            if file.unread_bytes and not is_finished:
                is_finished = True  # a last line without its newline
                continue
            at, is_finished = following, False
            yield Reading([], _place(at, kept))
        raise NotThereYet(f"{self._log.pattern}: no such file")

    def behind_bytes(self) -> int:
        """Return how much the file has that was not read."""
        return self._log.file.unread_bytes if self._log.file else 0

    def close(self) -> None:
        """Let go of the file."""
        self._log.close()

    def keep(self, kept: Kept, part: Part) -> tuple[Kept, list[Coverage]]:  # noqa: ARG002  (see traces)
        """Return what is to be kept with the place after a part, and what the part covers."""
        return kept, []

    def _parts(self, file: OpenFile, *, is_finished: bool) -> Iterator[Part]:
        """Parse what the file has; each part ends where a chunk did."""
        begin, lines, parsed = file.place, file.place.lines, []
        chunks = file.chunks(at_most=self._chunks_at_once, is_finished=is_finished)
        for more in self._parse(Given(chunks)):
            parsed.append(more)
            lines += more.account.lines
            end = file.place_after(lines)
            if end:
                yield Part(begin, end, parsed)
                begin, parsed = end, []


def _place(at: Place, kept: Kept) -> dict[str, Any]:
    return {"file": asdict(at), "kept": kept}
