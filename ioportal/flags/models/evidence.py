"""What rules judge of a job besides its statistics."""

from __future__ import annotations

from django.db import models

from ioportal.analysis.rules.evidence import PEAKS
from ioportal.jobs.models import Job
from ioportal.site.models import Filesystem


class JobEvidence(models.Model):
    """The most that a job did within five minutes, so far; null: not known.

    `ioportal.analysis.rules.evidence` says what each figure is.
    """

    job = models.OneToOneField(Job, models.CASCADE, primary_key=True, related_name="evidence")
    # When the newest window that is in it ended.
    seen_until = models.DateTimeField()
    # Where it did most within five minutes: whose limits it is judged by.
    filesystem = models.ForeignKey(Filesystem, models.SET_NULL, null=True, related_name="+")
    startup_operations = models.FloatField(null=True)
    startup_opens = models.FloatField(null=True)
    lock_share = models.FloatField(null=True)
    lock_ratio = models.FloatField(null=True)
    impact_s = models.FloatField(null=True)
    impact_share = models.FloatField(null=True)
    impact_times = models.FloatField(null=True)

    def __str__(self) -> str:
        return f"evidence of {self.job_id}"


for _name in PEAKS:
    JobEvidence.add_to_class(_name, models.FloatField(null=True))
    # When these five minutes ended.
    JobEvidence.add_to_class(f"{_name}_at", models.DateTimeField(null=True))
