"""Records of low-volume formats: read one at a time, returned in bounded parts."""

import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from collectors.batch.values import Unreadable
from collectors.parsed import Account, Parsed, Reject
from collectors.source import Lines, Source
from collectors.tables import Table

PART_LINES = 10_000
PART_CHARACTERS = 16 * 1024 * 1024

Row = dict[str, object]


@dataclass(frozen=True)
class Record:
    """A line, and the lines that continue it."""

    line: int  # of its first line, 1-based
    text: str  # without the last newline
    lines: int = 1


AnyRecord = TypeVar("AnyRecord", bound=Record)


def numbered_lines(source: Lines, *, keep_newline: bool = False) -> Iterator[tuple[int, str]]:
    """Yield the number and text of every line, by default without its newline.

    Bytes that are not UTF-8, and NUL, which no database stores, become U+FFFD. Leading NULs, as a
    crash of a host leaves them, are dropped.

    Raises:
        SourceUnavailable: the source cannot be read to its end.
    """
    for chunk in source.chunks():
        for number, line in enumerate(io.BytesIO(chunk.text), start=chunk.first_line):
            text = line.lstrip(b"\0").decode(errors="replace").replace("\0", "\ufffd")
            yield number, text if keep_newline else text.removesuffix("\n").removesuffix("\r")


def is_json(source: Source) -> bool:
    """Return whether an input that is not read yet is JSON, by its first character."""
    return source.head.lstrip()[:1] in {b"{", b"["}


def parts(
    table: Table, records: Iterable[AnyRecord], read: Callable[[AnyRecord], Row | None]
) -> Iterator[Parsed]:
    """Read every record and yield the rows in bounded parts.

    The first line of a record counts as accepted, rejected or irrelevant. Lines that continue it
    are irrelevant, so that the number of accepted lines is the number of rows.

    Args:
        table: the table of the rows.
        records: in order of their lines.
        read: returns the row of a record, or None if it is irrelevant; raises `Unreadable`.
    """
    part = _Part(table)
    for record in records:
        part.add(record, read)
        if part.is_full:
            yield part.parsed()
            part = _Part(table)
    if part.lines:
        yield part.parsed()


class _Part:
    def __init__(self, table: Table) -> None:
        self.lines = 0
        self._characters = 0
        self._table = table
        self._rows: list[Row] = []
        self._rejects: list[Reject] = []

    @property
    def is_full(self) -> bool:
        return self.lines >= PART_LINES or self._characters >= PART_CHARACTERS

    def add(self, record: AnyRecord, read: Callable[[AnyRecord], Row | None]) -> None:
        self.lines += record.lines
        self._characters += len(record.text)
        try:
            row = read(record)
        except Unreadable as error:
            self._rejects.append(Reject(record.line, record.text, str(error)))
        else:
            if row is not None:
                self._rows.append({"line": record.line, **row})

    def parsed(self) -> Parsed:
        accepted, rejected = len(self._rows), len(self._rejects)
        account = Account(self.lines, accepted, rejected, self.lines - accepted - rejected)
        return Parsed.from_rows(self._table, self._rows, self._rejects, account)
