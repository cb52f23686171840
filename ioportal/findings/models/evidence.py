"""Evidence about jobs that their statistics do not contain."""

from __future__ import annotations

from django.db import models

from ioportal.jobs.models import Job
from ioportal.rules.evidence import PEAKS
from ioportal.site.models import Filesystem, Server


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


class Observation(models.Model):
    """The latest evaluation of a metadata server: whether it is slow, and who does the work.

    It is not an accusation: who does most of the work in the last seconds of a queue is often not
    its cause.
    """

    server = models.OneToOneField(Server, models.CASCADE, primary_key=True, related_name="+")
    until = models.DateTimeField()  # end of the latest complete window
    is_estimated = models.BooleanField()  # from counters, because the server was not traced
    since = models.DateTimeField(null=True)  # start of the slow interval; null: not slow
    times = models.FloatField(null=True)  # time of requests / usual, in its worst window
    # Principals or groups with much of the work: kind, key and share, largest first.
    shares = models.JSONField(default=list)
    is_known = models.BooleanField(default=True)  # false: no principal's work is known

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="observation_slow_has_times",
                condition=models.Q(since=None, times=None)
                | models.Q(since__isnull=False, times__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.server} until {self.until}"


class EvaluatedServer(models.Model):
    """Up to when the impact on a metadata server has been computed.

    It never moves back: impact that is computed again keeps its figures until then.
    """

    server = models.OneToOneField(Server, models.CASCADE, primary_key=True, related_name="+")
    until = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.server} until {self.until}"
