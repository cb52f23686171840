"""Database expressions of jobs: run times, node hours, packed columns, keys and quantiles."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from django.contrib.postgres.fields import ArrayField
from django.db.models import (
    Aggregate,
    BigIntegerField,
    BinaryField,
    DateTimeField,
    DurationField,
    F,
    FloatField,
    Func,
    OuterRef,
    Subquery,
    Value,
)
from django.db.models.functions import Cast, Coalesce, Greatest, Least, NullIf

from ioportal.core.postgres.compiled import Parameter
from ioportal.jobs.models import JobStatistics

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from django.db.models import Q
    from django.db.models.expressions import Combinable

    from ioportal.jobs.analysis.anonymity import Numbers

# SQL: the latest possible end of a job `j` without a recorded end: one hour after its time limit.
# Null: no time limit, or too large for a date.
LATEST_END = """
CASE WHEN j.time_limit_s BETWEEN 0 AND 1e9
    THEN j.started_at + make_interval(secs => j.time_limit_s) + interval '1 hour' END
"""
# A subquery runs for unfinished jobs only; a join would include all jobs.
_DURATION_SO_FAR = Subquery(JobStatistics.objects.filter(job=OuterRef("pk")).values("duration_s"))
_LAST_OBSERVED = F("started_at") + Func(
    _DURATION_SO_FAR,
    template="make_interval(secs => %(expressions)s)",
    output_field=DurationField(),
)
# As `Job.known_until`.
KNOWN_UNTIL = Coalesce(
    "ended_at", _LAST_OBSERVED, "started_at", output_field=DateTimeField(null=True)
)


def nodes(job: str = "") -> Least:
    """Return an expression for a job's nodes; where nodes are shared, its cores / cores per node.

    Args:
        job: path from the model of the query to the job, such as ``job__``.
    """
    cores = Cast(NullIf(f"{job}core_count", Value(0)), FloatField())
    # `least` ignores null (unknown).
    return Least(Cast(f"{job}node_count", FloatField()), cores / F(f"{job}cluster__cores_per_node"))


def node_hours(start: datetime | None = None, end: datetime | None = None) -> Combinable:
    """Return an expression for a job's node hours in [start, end); None: unbounded."""
    begins, ends = (Value(at, DateTimeField(null=True)) for at in (start, end))
    inside_s = Func(
        Least(KNOWN_UNTIL, ends) - Greatest("started_at", begins),
        template="greatest(extract(epoch FROM %(expressions)s)::float8, 0)",
        output_field=FloatField(),
    )
    return nodes() * inside_s / 3600.0


def most_at_once(runs: Iterable[tuple[datetime, datetime]]) -> int:
    """Return the largest number of runs at a time; one that starts as another ends comes after."""
    changes = sorted(change for start, end in runs for change in ((start, 1), (end, -1)))
    return max(accumulate(step for _, step in changes), default=0)


_WIRE = {"FloatField": ">f8", "IntegerField": ">i4", "BigIntegerField": ">i8"}
_SEND = {">f8": "float8send", ">i4": "int4send", ">i8": "int8send"}


class Packed(Aggregate):
    """The known values of a column, concatenated in binary: ten times as fast as rows.

    Columns without nulls that are read by one statement have the same order of rows.
    """

    function = "string_agg"
    output_field = BinaryField()

    def __init__(self, column: Combinable | str, wire: str, filter: Q | None = None) -> None:  # noqa: A002  (Django's)
        self.wire = wire
        self.template = f"%(function)s({_SEND[wire]}(%(expressions)s), '')"
        super().__init__(column, filter=filter)

    def unpack(self, data: bytes | None) -> Numbers:
        """Return the values."""
        values: Numbers = np.frombuffer(data or b"", dtype=self.wire).astype(self.wire[1:])
        return values


class Hash(Func):
    """A number for a text."""

    function = "hashtextextended"
    output_field = BigIntegerField()

    def __init__(self, text: Combinable | str) -> None:
        super().__init__(text, Value(0))


def metric_column(metric: str) -> tuple[Combinable, str]:
    """Return the column of a metric in job statistics, and its binary type."""
    meta = JobStatistics._meta.get_field(metric)  # noqa: SLF001  (documented meta API)
    return F(metric), _WIRE[meta.get_internal_type()]


KEYS: ArrayField[Sequence[int], list[int]] = ArrayField(BigIntegerField())


class EachOf(Func):
    """Keys as a single array parameter; a statement has at most 65,535 parameters."""

    template = "(SELECT unnest(%(expressions)s))"
    output_field = BigIntegerField()

    def __init__(self, keys: Sequence[int] | Parameter) -> None:
        is_parameter = isinstance(keys, Parameter)
        super().__init__(keys if is_parameter else Value(keys, output_field=KEYS))


class Quantiles(Aggregate):
    """Interpolated quantiles: a list, in the order of `shares`."""

    function = "percentile_cont"
    template = "%(function)s(ARRAY[%(shares)s]) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = ArrayField(FloatField())

    def __init__(self, expression: str, shares: tuple[float, ...], **options: Any) -> None:
        super().__init__(expression, shares=", ".join(map(str, shares)), **options)
