"""Pages of long lists, with limited counts."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.core.paginator import Paginator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet

COUNTED = 100_000  # further rows are neither counted nor paged; filters reach them


class Concatenated:
    """The rows of several QuerySets in sequence, up to a length."""

    def __init__(self, parts: Sequence[QuerySet[Any, Any]], length: int) -> None:
        self._parts = parts
        self._length = length

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, part_of_rows: slice) -> list[Any]:
        result: list[Any] = []
        start, stop = part_of_rows.start, part_of_rows.stop
        for part in self._parts:
            rows = list(part[start:stop])
            result += rows
            if len(rows) == stop - start:
                break
            length = start + len(rows) if rows or not start else part.count()
            start, stop = max(0, start - length), stop - length
        return result


class CountedPaginator(Paginator):  # type: ignore[type-arg]  # not generic at run time
    """Pages of a QuerySet, over at most `COUNTED` rows."""

    @cached_property
    def count(self) -> int:
        """The number of rows on pages."""
        rows: Any = self.object_list
        return int(rows.order_by().values("pk")[:COUNTED].count())
