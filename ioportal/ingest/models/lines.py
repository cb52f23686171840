"""Lines of segments: rejects, the records of jobs, and records of another owner."""

from __future__ import annotations

from django.db import models

from ioportal.ingest.models.segment import Segment
from ioportal.jobs.models import Job, WorkloadJob
from ioportal.site.models import Source


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


class OwnerConflict(models.Model):
    """A record that is not applied: of another owner, or of another source for an ended job.

    The latest per job and source. An explicit correction resolves it.
    """

    job = models.ForeignKey(Job, models.CASCADE, related_name="owner_conflicts")
    source = models.ForeignKey(Source, models.CASCADE, null=True, related_name="+")  # null: a file
    reported_owner = models.CharField(max_length=64)
    segment = models.ForeignKey(Segment, models.CASCADE, related_name="owner_conflicts")
    line = models.BigIntegerField()
    differences = models.CharField(max_length=255, default="owner")  # facts that it would change

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="owner_conflict", fields=["job", "source"], nulls_distinct=False
            )
        ]

    def __str__(self) -> str:
        return f"{self.segment} line {self.line}: {self.job} of {self.reported_owner}"
