"""Back-tests of a rule's thresholds, and their results."""

from __future__ import annotations

from typing import Self

from django.db import models
from django.db.models import F, Q

from ioportal.site.models import Cluster, Filesystem

UNFINISHED = ["waiting", "running"]


class BackTestQuerySet(models.QuerySet["BackTest"]):
    """Queries of back-tests."""

    def unfinished(self) -> Self:
        """Waiting and running back-tests."""
        return self.filter(state__in=UNFINISHED)


class BackTest(models.Model):
    """What a rule with the proposed thresholds would have flagged in a period."""

    class State(models.TextChoices):
        """Progress of a back-test."""

        WAITING = "waiting", "waiting"
        RUNNING = "running", "running"
        DONE = "done", "done"
        FAILED = "failed", "failed"
        STOPPED = "stopped", "stopped"  # by a user

    rule = models.CharField(max_length=64)
    thresholds = models.JSONField()  # proposed
    # The part of the site to which the thresholds apply; elsewhere current thresholds apply.
    cluster = models.ForeignKey(Cluster, models.CASCADE, null=True, blank=True)
    filesystem = models.ForeignKey(Filesystem, models.CASCADE, null=True, blank=True)
    queue = models.CharField(max_length=128, blank=True)
    start = models.DateTimeField()
    end = models.DateTimeField()
    requested_by = models.CharField(max_length=150)
    requested_at = models.DateTimeField(auto_now_add=True)

    state = models.CharField(max_length=8, choices=State, default=State.WAITING)
    done_share = models.FloatField(default=0)
    evaluated = models.BigIntegerField(default=0)  # subjects
    took_s = models.FloatField(null=True)
    # The worst subjects: subject, owner, value, until, current and proposed (whether flagged).
    subjects = models.JSONField(default=list)
    # Flagged subjects, their cases and owners by current, proposed, both and only one of the
    # thresholds; and suppressed findings.
    counts = models.JSONField(default=dict)
    # The current thresholds of that part of the site when the back-test ran.
    current_thresholds = models.JSONField(default=dict)
    error = models.CharField(max_length=500, blank=True)

    objects = BackTestQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.CheckConstraint(
                name="backtest_ends_after_start",
                condition=Q(end__gt=F("start")),
                violation_error_message="The end must be after the start.",
            ),
        ]
        indexes = [
            # The next back-test to run.
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
        """Whether the back-test has finished, failed or been stopped."""
        return self.state not in UNFINISHED
