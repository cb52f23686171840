"""Late data: rows that arrive after retention (`ingest/data_quality/late_accounting.py`)."""

from __future__ import annotations

from django.db import models

from ioportal.ingest.models.segment import Segment
from ioportal.jobs.models import Job
from ioportal.site.models import Server, Target


class LateRows(models.Model):
    """Data that arrived after retention dropped the rows needed to attribute it.

    It is stored but not attributed: see `ioportal.ingest.attribution_stage`. The storage page lists
    it.
    """

    server = models.ForeignKey(Server, models.CASCADE, null=True)  # of a trace
    target = models.ForeignKey(Target, models.CASCADE, null=True)  # of a read
    job = models.ForeignKey(Job, models.CASCADE, null=True)  # of a record
    segment = models.ForeignKey(Segment, models.CASCADE, null=True)  # of differences
    start = models.DateTimeField()
    end = models.DateTimeField()
    noticed_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(name="laterows_recent", fields=["-noticed_at"])]

    def __str__(self) -> str:
        return (
            f"{self.server or self.target or self.job or self.segment} {self.start} to {self.end}"
        )
