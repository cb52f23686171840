"""Quantiles of a column, by the database."""

from __future__ import annotations

from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db.models import Aggregate, FloatField


class Quantiles(Aggregate):
    """Interpolated quantiles: a list, in the order of `shares`."""

    function = "percentile_cont"
    template = "%(function)s(ARRAY[%(shares)s]) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = ArrayField(FloatField())

    def __init__(self, expression: str, shares: tuple[float, ...], **options: Any) -> None:
        super().__init__(expression, shares=", ".join(map(str, shares)), **options)
