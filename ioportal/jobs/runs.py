"""Run times and node hours of jobs as database expressions, and their concurrency."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from django.db.models import (
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

from ioportal.jobs.models import JobStatistics

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from django.db.models.expressions import Combinable

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
