"""What the database says of jobs' runs, for whoever adds them up."""

from __future__ import annotations

from django.db.models import DateTimeField, DurationField, ExpressionWrapper, F, FloatField, Func
from django.db.models.functions import Coalesce

_AFTER_ITS_DURATION = F("started_at") + Func(
    F("statistics__duration_s"),
    template="make_interval(secs => %(expressions)s)",
    output_field=DurationField(),
)
# As `Job.known_until`: while it runs, up to when its statistics know it.
KNOWN_UNTIL = Coalesce(
    "ended_at", _AFTER_ITS_DURATION, "started_at", output_field=DateTimeField(null=True)
)
_RUN = ExpressionWrapper(KNOWN_UNTIL - F("started_at"), output_field=DurationField())
NODE_HOURS = (
    F("node_count")
    * Func(_RUN, template="extract(epoch FROM %(expressions)s)::float8", output_field=FloatField())
    / 3600.0
)
