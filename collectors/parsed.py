"""The result of a collector: a typed table, the rejects and the account of all lines."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import polars as pl

from collectors.tables import REJECTS, Table

REJECT_TEXT_CHARACTERS = 1_000


class SourceUnavailable(Exception):  # noqa: N818  (a state of the source, not a fault of ours)
    """The source cannot be opened or decompressed; parts read so far must be discarded."""


@dataclass(frozen=True)
class Reject:
    """A line that claims to be data and cannot be parsed."""

    line: int
    text: str
    reason: str


@dataclass(frozen=True)
class Account:
    """Counts of lines by outcome: ``lines == accepted + rejected + irrelevant``."""

    lines: int = 0
    accepted: int = 0
    rejected: int = 0
    irrelevant: int = 0

    def __add__(self, other: Self) -> "Account":
        return Account(
            self.lines + other.lines,
            self.accepted + other.accepted,
            self.rejected + other.rejected,
            self.irrelevant + other.irrelevant,
        )


@dataclass(frozen=True)
class Parsed:
    """One bounded part of a source, parsed.

    Attributes:
        table: exactly the columns of the collector's table.
        rejects: all rejects of this part, with the columns of `tables.REJECTS`.
        account: of the lines of this part.
        observed: names of the targets read in this part, including idle targets without rows.
        seconds: of an RPC trace, rows of `tables.RPC_SECONDS`; they may belong to records of
            earlier parts.
    """

    table: pl.DataFrame
    rejects: pl.DataFrame
    account: Account
    observed: frozenset[str] = frozenset()
    seconds: pl.DataFrame | None = None

    @classmethod
    def from_rows(
        cls,
        table: Table,
        rows: list[dict[str, object]],
        rejects: Sequence[Reject],
        account: Account,
    ) -> Self:
        """Build from Python rows, for low-volume formats."""
        return cls(table.frame(rows), reject_frame(rejects), account)

    @classmethod
    def joined(cls, table: Table, parts: Iterable[Self]) -> Self:
        """Join all parts of a source that fits into memory."""
        parts = list(parts)
        seconds = [part.seconds for part in parts if part.seconds is not None]
        return cls(
            pl.concat([table.empty(), *(part.table for part in parts)]),
            pl.concat([REJECTS.empty(), *(part.rejects for part in parts)]),
            sum((part.account for part in parts), Account()),
            frozenset().union(*(part.observed for part in parts)),
            pl.concat(seconds) if seconds else None,
        )


def reject_frame(rejects: Sequence[Reject]) -> pl.DataFrame:
    """Return `rejects` as a frame of `tables.REJECTS`, with long texts truncated."""
    return REJECTS.frame(
        [
            {"line": r.line, "text": r.text[:REJECT_TEXT_CHARACTERS], "reason": r.reason}
            for r in rejects
        ]
    )
