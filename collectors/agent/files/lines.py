"""Reading of growing logs with one record per line."""

from collections.abc import Callable, Generator, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from collectors.agent.delivery.batches import Coverage, batches
from collectors.agent.files.open_file import OpenFile, Position
from collectors.agent.files.tail import LogTail
from collectors.agent.reader import Reading, SourceMissing
from collectors.parsed import Parsed
from collectors.source import Chunk, Lines
from collectors.tables import Table

Context = dict[str, Any]  # state of the checkpoint in addition to the position


@dataclass(frozen=True)
class Part:
    """The parsed lines between two positions of a file."""

    begin: Position
    end: Position
    parsed: list[Parsed]


@dataclass(frozen=True)
class ChunkedLines:
    """Lines from an iterator of chunks."""

    iterator: Iterator[Chunk]

    def chunks(self) -> Iterator[Chunk]:
        """Yield the chunks."""
        return self.iterator


class LineReader:
    """Reads the files of a log one after the other.

    Args:
        table: of the records' rows.
        log: the log.
        parse: parses the records.
        chunks_at_once: number of chunks per call of the parser; None: all, for parsers whose parts
            end where chunks end.
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

    def read(self, checkpoint: dict[str, Any]) -> Generator[Reading]:
        """Yield new data up to the end of the log."""
        position = Position(**checkpoint["file"]) if checkpoint else None
        context: Context = checkpoint.get("context", {})
        is_finished = False  # no more writes to the file
        while file := self._log.find(position):
            position = begin = file.position
            for part in self.parts(file, is_finished=is_finished):
                position = part.end
                context, coverage = self.advance(context, part)
                yield Reading(
                    list(batches(self._table, part.parsed, coverage)),
                    _checkpoint(position, context),
                )
            if position != begin:
                is_finished = False
                continue
            following = self._log.successor(position)
            if following is None:
                return
            if file.unread_bytes and not is_finished:
                is_finished = True  # accept a last line without a newline
                continue
            position, is_finished = following, False
            yield Reading([], _checkpoint(position, context))
        raise SourceMissing(f"{self._log.pattern}: no such file")

    def behind_bytes(self) -> int:
        """Return the number of unread bytes in the file."""
        return self._log.file.unread_bytes if self._log.file else 0

    def close(self) -> None:
        """Close the file."""
        self._log.close()

    def advance(
        self,
        context: Context,
        part: Part,  # noqa: ARG002  (used in traces)
    ) -> tuple[Context, list[Coverage]]:
        """Return the context after a part, and the coverage of the part."""
        return context, []

    def ready(self) -> Callable[[bytes], int]:
        """Return a function that returns how many bytes of new lines can be read already."""
        return len

    def parts(self, file: OpenFile, *, is_finished: bool) -> Iterator[Part]:
        """Parse the file's new lines; each part ends at the end of a chunk."""
        begin, lines, parsed = file.position, file.position.lines, []
        chunks = file.chunks(
            at_most=self._chunks_at_once, is_finished=is_finished, ready=self.ready()
        )
        for more in self._parse(ChunkedLines(chunks)):
            parsed.append(more)
            lines += more.account.lines
            end = file.position_after(lines)
            if end:
                yield Part(begin, end, parsed)
                begin, parsed = end, []


def _checkpoint(position: Position, context: Context) -> dict[str, Any]:
    return {"file": asdict(position), "context": context}
