"""Pages of long lists: counted only as far as anybody pages."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from django.core.paginator import Paginator

COUNTED = 100_000  # rows beyond are neither counted nor paged to: filters reach them


class CountedPaginator(Paginator):  # type: ignore[type-arg]  # not generic at run time
    """Pages over at most `COUNTED` rows of a QuerySet."""

    object_list: Any

    @cached_property
    def reached(self) -> int:
        """Rows counted: one more than `COUNTED` where there are more."""
        return int(self.object_list.order_by()[: COUNTED + 1].count())

    @cached_property
    def count(self) -> int:
        """Rows that pages reach."""
        return min(self.reached, COUNTED)
