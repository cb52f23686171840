"""Evidence about jobs that their statistics do not contain."""

from __future__ import annotations

from django.db import models

from ioportal.jobs.models import Job
from ioportal.rules.evidence import PEAKS
from ioportal.site.models import Filesystem


class JobEvidence(models.Model):
    """Peak activity of a job so far; null: unknown.

    `ioportal.rules.evidence` defines each figure.
    """

    job = models.OneToOneField(Job, models.CASCADE, primary_key=True, related_name="evidence")
    # End of the latest window that the figures include.
    seen_until = models.DateTimeField()
    # The filesystem with most operations at the peak: its thresholds apply.
    filesystem = models.ForeignKey(Filesystem, models.SET_NULL, null=True, related_name="+")
    startup_operations = models.FloatField(null=True)
    startup_opens = models.FloatField(null=True)
    lock_share = models.FloatField(null=True)
    lock_ratio = models.FloatField(null=True)
    impact_s = models.FloatField(null=True)
    impact_share = models.FloatField(null=True)
    impact_times = models.FloatField(null=True)
    impact_is_estimated = models.BooleanField(null=True)

    def __str__(self) -> str:
        return f"evidence of {self.job_id}"


for _name in PEAKS:
    JobEvidence.add_to_class(_name, models.FloatField(null=True))
    # End of the interval of the peak.
    JobEvidence.add_to_class(f"{_name}_at", models.DateTimeField(null=True))
