"""What the database says of jobs' runs, for whoever adds them up."""

from __future__ import annotations

from django.db.models import (
    DateTimeField,
    DurationField,
    ExpressionWrapper,
    F,
    FloatField,
    Func,
    OuterRef,
    Subquery,
)
from django.db.models.functions import Coalesce

from ioportal.jobs.models import JobStatistics

# Looked up for jobs that have not ended, and not joined for all the others.
_KNOWN_DURATION = Subquery(JobStatistics.objects.filter(job=OuterRef("pk")).values("duration_s"))
_AFTER_IT = F("started_at") + Func(
    _KNOWN_DURATION,
    template="make_interval(secs => %(expressions)s)",
    output_field=DurationField(),
)
# As `Job.known_until`: while it runs, up to when its statistics know it.
KNOWN_UNTIL = Coalesce("ended_at", _AFTER_IT, "started_at", output_field=DateTimeField(null=True))
_RUN = ExpressionWrapper(KNOWN_UNTIL - F("started_at"), output_field=DurationField())
NODE_HOURS = (
    F("node_count")
    * Func(_RUN, template="extract(epoch FROM %(expressions)s)::float8", output_field=FloatField())
    / 3600.0
)
