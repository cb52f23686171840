"""Lines of segments: rejects, and the records of jobs."""

from __future__ import annotations

from django.db import models

from ioportal.ingest.models.segment import Segment
from ioportal.jobs.models import Job, WorkloadJob


class Reject(models.Model):
    """A data line that cannot be parsed; the first lines of each reason are stored."""

    segment = models.ForeignKey(Segment, models.CASCADE, related_name="rejects")
    line = models.BigIntegerField()
    text = models.TextField()
    reason = models.TextField()

    class Meta:
        indexes = [models.Index(name="reject_line", fields=["segment", "line"])]

    def __str__(self) -> str:
        return f"{self.segment} line {self.line}: {self.reason}"


class AccountingRecord(models.Model):
    """The line of a segment that contains a record of a job, launch or PanDA job."""

    segment = models.ForeignKey(Segment, models.CASCADE, related_name="accounting_records")
    line = models.BigIntegerField()
    job = models.ForeignKey(Job, models.CASCADE, null=True, related_name="records")
    workload_job = models.ForeignKey(WorkloadJob, models.CASCADE, null=True, related_name="records")

    def __str__(self) -> str:
        return f"{self.segment} line {self.line}"
