"""What the database says of jobs' runs, for whoever adds them up."""

from __future__ import annotations

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
    from datetime import datetime

    from django.db.models.expressions import Combinable

# Of a job `j` without a recorded end, the latest moment at which it may have run, in SQL: one hour
# after its time limit. Null: no limit is known, or it is beyond any date.
LATEST_END = """
CASE WHEN j.time_limit_s BETWEEN 0 AND 1e9
    THEN j.started_at + make_interval(secs => j.time_limit_s) + interval '1 hour' END
"""
# Looked up for jobs that have not ended, and not joined for all the others.
_KNOWN_DURATION = Subquery(JobStatistics.objects.filter(job=OuterRef("pk")).values("duration_s"))
_AFTER_IT = F("started_at") + Func(
    _KNOWN_DURATION,
    template="make_interval(secs => %(expressions)s)",
    output_field=DurationField(),
)
# As `Job.known_until`: while it runs, up to when its statistics know it, `LATEST_END` at most.
KNOWN_UNTIL = Coalesce("ended_at", _AFTER_IT, "started_at", output_field=DateTimeField(null=True))
# Nodes of a job: where its cluster shares nodes, as many as its cores fill. Null (not known) is
# no bound of `least`.
NODES = Least(
    Cast("node_count", FloatField()),
    Cast(NullIf("core_count", Value(0)), FloatField()) / F("cluster__cores_per_node"),
)


def node_hours(start: datetime | None, end: datetime | None) -> Combinable:
    """Return the nodes of a job times the hours of its run in [start, end); None: no bound."""
    begins, ends = (Value(at, DateTimeField(null=True)) for at in (start, end))
    inside_s = Func(
        Least(KNOWN_UNTIL, ends) - Greatest("started_at", begins),
        template="greatest(extract(epoch FROM %(expressions)s)::float8, 0)",
        output_field=FloatField(),
    )
    return NODES * inside_s / 3600.0
