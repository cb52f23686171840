"""Pages of long lists: counted only as far as anybody pages."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.core.paginator import Paginator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet

COUNTED = 100_000  # rows beyond are neither counted nor paged to: filters reach them


class InTurn:
    """The rows of some QuerySets, one after the other: so many of them."""

    def __init__(self, parts: Sequence[QuerySet[Any, Any]], length: int) -> None:
        self._parts = parts
        self._length = length

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, wanted: slice) -> list[Any]:
        found: list[Any] = []
        start, stop = wanted.start, wanted.stop
        for part in self._parts:
            rows = list(part[start:stop])
            found += rows
            if len(rows) == stop - start:
                break
            length = start + len(rows) if rows or not start else part.count()
            start, stop = max(0, start - length), stop - length
        return found


class CountedPaginator(Paginator):  # type: ignore[type-arg]  # not generic at run time
    """Pages of a QuerySet's rows, over at most `COUNTED` of them."""

    @cached_property
    def count(self) -> int:
        """Rows that pages reach."""
        rows: Any = self.object_list
        return int(rows.order_by().values("pk")[:COUNTED].count())
