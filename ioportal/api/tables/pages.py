"""Rows of a table in a stable order, from a position on."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.db.models import F, Q

from ioportal.api.problems import invalid
from ioportal.core.visible_text import storable
from ioportal.telemetry.copy import read_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

    from ioportal.api.tables.columns import Table

_SORT, _KEY = "_sort", "_key"
_MOST_CURSOR_CHARACTERS = 2_000
_HIGHEST_KEY = (1 << 63) - 1


@dataclass(frozen=True)
class Position:
    """The last row before a page: the order, its value in the sorted column, and its key."""

    order: str
    value: Any
    key: int

    @property
    def cursor(self) -> str:
        """The position as a parameter of a URL."""
        content = json.dumps([*vars(self).values()], default=lambda moment: moment.isoformat())
        return urlsafe_b64encode(content.encode()).decode().rstrip("=")


@dataclass(frozen=True)
class Rows:
    """Rows of a table: selected jobs, columns, and an order that ends with the key.

    Unknown values come last.
    """

    table: Table
    jobs: Any  # a QuerySet of the table's kind
    names: Sequence[str]
    sort: str  # a column
    descending: bool

    def position(self, cursor: str) -> Position | None:
        """Return the position of a cursor; None: the start.

        Raises:
            Problem: it is not a cursor of this order.
        """
        if not cursor:
            return None
        try:
            order, value, key = _decoded(cursor)
            if order != self._order:
                raise invalid("cursor", "It belongs to another order.")
            value = None if value is None else self.table.field(self.sort).to_python(value)
            if isinstance(value, datetime):
                value = value.astimezone(UTC)
        except (ValueError, TypeError, OverflowError, RecursionError, ValidationError) as error:
            message = "Send the value 'next' of a response."
            raise invalid("cursor", message) from error
        return Position(order, value, key)

    def pages(
        self, start: Position | None, size: int
    ) -> Iterator[tuple[pl.DataFrame, Position | None]]:
        """Yield all rows from a position on in pages of up to `size`, with the next position."""
        position = start
        while True:
            frame = self._read(position, size + 1)
            has_more = frame.height > size
            frame = frame.head(size)
            position = (
                Position(self._order, frame[_SORT][-1], frame[_KEY][-1]) if has_more else None
            )
            yield frame.drop(_SORT, _KEY), position
            if position is None:
                return

    @property
    def _order(self) -> str:
        return f"-{self.sort}" if self.descending else self.sort

    def _read(self, start: Position | None, count: int) -> pl.DataFrame:
        sort = F(self.table.paths[self.sort])
        # An index on a column without nulls does not serve an order with nulls last.
        nulls = {"nulls_last": True} if self.table.is_nullable(self.sort) else {}
        order = sort.desc(**nulls) if self.descending else sort.asc(**nulls)
        jobs = self.jobs if start is None else self.jobs.filter(self._after(start))
        expressions = {f"_{name}": self.table.expression(name) for name in self.names}
        rows = (
            jobs.annotate(**expressions, **{_SORT: sort, _KEY: F("pk")})
            .order_by(order, "-pk" if self.descending else "pk")
            .values_list(*expressions, _SORT, _KEY)[:count]
        )
        types = {name: self.table.type_of(name) for name in self.names}
        types |= {_SORT: self.table.type_of(self.sort), _KEY: self.table.type_of("id")}
        return read_rows(rows, types)

    def _after(self, start: Position) -> Q:
        path, beyond = self.table.paths[self.sort], "lt" if self.descending else "gt"
        same = {path: start.value} if start.value is not None else {f"{path}__isnull": True}
        after = Q(**same, **{f"pk__{beyond}": start.key})
        if start.value is None:
            return after
        return after | Q(**{f"{path}__{beyond}": start.value}) | Q(**{f"{path}__isnull": True})


def _decoded(cursor: str) -> tuple[str, Any, int]:
    """Return order, value and key of a cursor.

    Raises:
        ValueError, TypeError, RecursionError: it is not a cursor.
    """
    text = urlsafe_b64decode(cursor[:_MOST_CURSOR_CHARACTERS] + "=" * (-len(cursor) % 4))
    order, value, key = json.loads(text)
    if isinstance(value, str) and storable(value) != value:
        raise ValueError(value)
    if type(key) is not int or abs(key) > _HIGHEST_KEY:
        raise ValueError(key)
    return order, value, key
