"""Many keys in a query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.postgres.fields import ArrayField
from django.db.models import BigIntegerField, Func, Value

if TYPE_CHECKING:
    from collections.abc import Sequence


class EachOf(Func):
    """Each of many keys, given as one parameter: a list of them has room for 65,535."""

    template = "(SELECT unnest(%(expressions)s))"
    output_field = BigIntegerField()

    def __init__(self, keys: Sequence[int]) -> None:
        super().__init__(Value(keys, output_field=ArrayField(BigIntegerField())))
