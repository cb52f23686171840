"""Queries by many primary keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.postgres.fields import ArrayField
from django.db.models import BigIntegerField, Func, Value

if TYPE_CHECKING:
    from collections.abc import Sequence


class EachOf(Func):
    """Keys as a single array parameter; a statement has at most 65,535 parameters."""

    template = "(SELECT unnest(%(expressions)s))"
    output_field = BigIntegerField()

    def __init__(self, keys: Sequence[int]) -> None:
        super().__init__(Value(keys, output_field=ArrayField(BigIntegerField())))
