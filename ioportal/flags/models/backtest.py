"""Questions of what a rule would have flagged, and their answers."""

from __future__ import annotations

from typing import Self

from django.db import models
from django.db.models import F, Q

from ioportal.site.models import Cluster, Filesystem

UNFINISHED = ["waiting", "running"]


class BackTestQuerySet(models.QuerySet["BackTest"]):
    """Questions about back-tests."""

    def unfinished(self) -> Self:
        """Those that a worker has to do."""
        return self.filter(state__in=UNFINISHED)


class BackTest(models.Model):
    """What a rule with some limits would have flagged in a period, beside those in force."""

    class State(models.TextChoices):
        """How far it is."""

        WAITING = "waiting", "waiting"
        RUNNING = "running", "running"
        DONE = "done", "done"
        FAILED = "failed", "failed"
        STOPPED = "stopped", "stopped"  # by somebody

    rule = models.CharField(max_length=64)
    limits = models.JSONField()
    # The part of the site that the limits are meant for; elsewhere those in force are tried twice.
    cluster = models.ForeignKey(Cluster, models.CASCADE, null=True, blank=True)
    filesystem = models.ForeignKey(Filesystem, models.CASCADE, null=True, blank=True)
    queue = models.CharField(max_length=128, blank=True)
    start = models.DateTimeField()
    end = models.DateTimeField()
    asked_by = models.CharField(max_length=150)
    asked_at = models.DateTimeField(auto_now_add=True)

    state = models.CharField(max_length=8, choices=State, default=State.WAITING)
    done_share = models.FloatField(default=0)
    judged = models.BigIntegerField(default=0)  # subjects
    took_s = models.FloatField(null=True)
    # The worst: subject, owner, value, and whether it is flagged now, and by the limits tried.
    found = models.JSONField(default=list)
    # How many are flagged by those in force, those tried, both, only one of them; their owners; and
    # how many would be withheld, for their data are not good.
    counts = models.JSONField(default=dict)
    # The limits that held in that part of the site when it ran.
    in_force = models.JSONField(default=dict)
    error = models.CharField(max_length=500, blank=True)

    objects = BackTestQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.CheckConstraint(
                name="backtest_ends_after_start",
                condition=Q(end__gt=F("start")),
                violation_error_message="It must end after it starts.",
            ),
        ]
        indexes = [
            # What is to be done.
            models.Index(
                name="backtest_waiting",
                fields=["id"],
                condition=Q(state__in=UNFINISHED),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.rule} from {self.start} to {self.end}"

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come of it."""
        return self.state not in UNFINISHED
