"""What a collector gives back: a typed table, the rejects, and the account of every line."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import polars as pl

from collectors.tables import REJECTS, Table

REJECT_TEXT_CHARACTERS = 1_000


class SourceUnavailable(Exception):  # noqa: N818  (a state of the source, not a fault of ours)
    """The text cannot be opened or decompressed; nothing of it may be kept."""


@dataclass(frozen=True)
class Reject:
    """A line that claims to be data and is not readable."""

    line: int
    text: str
    reason: str


@dataclass(frozen=True)
class Account:
    """Where every line went: ``lines == accepted + rejected + irrelevant``."""

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
    """One bounded part of a source, understood.

    `table` has exactly the columns of the collector's table; `rejects` those of `tables.REJECTS`,
    every one of this part; `account` covers the lines of this part; `observed` names what this part
    is a reading of, where that may have been idle and so have no row.
    """

    table: pl.DataFrame
    rejects: pl.DataFrame
    account: Account
    observed: frozenset[str] = frozenset()

    @classmethod
    def from_rows(
        cls,
        table: Table,
        rows: list[dict[str, object]],
        rejects: Sequence[Reject],
        account: Account,
    ) -> Self:
        """Build from plain rows: for formats of low volume."""
        return cls(table.frame(rows), reject_frame(rejects), account)

    @classmethod
    def joined(cls, table: Table, parts: Iterable[Self]) -> Self:
        """Put parts together, of a text that is small enough for it."""
        parts = list(parts)
        return cls(
            pl.concat([table.empty(), *(part.table for part in parts)]),
            pl.concat([REJECTS.empty(), *(part.rejects for part in parts)]),
            sum((part.account for part in parts), Account()),
            frozenset().union(*(part.observed for part in parts)),
        )


def reject_frame(rejects: Sequence[Reject]) -> pl.DataFrame:
    """Return `rejects` as a frame of `tables.REJECTS`, with long texts cut."""
    return REJECTS.frame(
        [
            {"line": r.line, "text": r.text[:REJECT_TEXT_CHARACTERS], "reason": r.reason}
            for r in rejects
        ]
    )
