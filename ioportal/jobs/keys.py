"""Queries by many primary keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.postgres.fields import ArrayField
from django.db.models import BigIntegerField, Func, Value

from ioportal.core.postgres.compiled import Parameter

if TYPE_CHECKING:
    from collections.abc import Sequence

KEYS: ArrayField[Sequence[int], list[int]] = ArrayField(BigIntegerField())


class EachOf(Func):
    """Keys as a single array parameter; a statement has at most 65,535 parameters."""

    template = "(SELECT unnest(%(expressions)s))"
    output_field = BigIntegerField()

    def __init__(self, keys: Sequence[int] | Parameter) -> None:
        is_parameter = isinstance(keys, Parameter)
        super().__init__(keys if is_parameter else Value(keys, output_field=KEYS))
