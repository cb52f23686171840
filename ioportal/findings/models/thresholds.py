"""Thresholds that a site sets, with their history."""

from __future__ import annotations

from typing import Self

from django.db import models
from django.db.models import F, Q

from ioportal.site.models import Cluster, Filesystem

_PARTS = ("cluster_id", "filesystem_id", "queue")  # that define a part of the site
_SCOPE = ("rule", *_PARTS)
UNFINISHED = ["waiting", "running"]


class ThresholdSetQuerySet(models.QuerySet["ThresholdSet"]):
    """Queries of threshold sets."""

    def same_scope(self, threshold_set: ThresholdSet) -> Self:
        """Sets of the same rule and part of the site."""
        return self.filter(
            rule=threshold_set.rule,
            cluster=threshold_set.cluster_id,
            filesystem=threshold_set.filesystem_id,
            queue=threshold_set.queue,
        )

    def current(self) -> Self:
        """The latest set of each rule and part of the site."""
        return self.order_by(*_SCOPE, "-pk").distinct(*_SCOPE)


class ThresholdSet(models.Model):
    """Thresholds of a rule for a part of the site. Immutable: a later set replaces it.

    A threshold that is not set is inherited from the next wider part, finally from the rule.
    """

    rule = models.CharField(max_length=64)
    cluster = models.ForeignKey(Cluster, models.CASCADE, null=True, blank=True)
    filesystem = models.ForeignKey(Filesystem, models.CASCADE, null=True, blank=True)
    queue = models.CharField(max_length=128, blank=True)
    thresholds = models.JSONField(default=dict, blank=True)
    advice = models.TextField(blank=True, max_length=2_000)  # "": inherited
    is_on = models.BooleanField(null=True)  # null: inherited
    reason = models.CharField(max_length=200)
    set_by = models.CharField(max_length=150, editable=False)
    set_at = models.DateTimeField(auto_now_add=True)

    objects = ThresholdSetQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        indexes = [
            # Current and previous sets of a scope.
            models.Index(
                name="thresholdset_scope", fields=["rule", "cluster", "filesystem", "queue", "-id"]
            ),
        ]
        constraints = [
            models.CheckConstraint(
                name="thresholdset_queue_of_cluster",
                condition=Q(queue="") | Q(cluster__isnull=False),
                violation_error_message="A queue needs a cluster. Choose its cluster too.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.rule}: {self.scope}"

    @property
    def is_everywhere(self) -> bool:
        """Whether the set applies to the whole site."""
        return not (self.cluster_id or self.filesystem_id or self.queue)

    @property
    def is_withdrawn(self) -> bool:
        """Whether the set is empty: everything is inherited again."""
        return not self.thresholds and not self.advice and self.is_on is None

    def replaces(self, other: ThresholdSet) -> bool:
        """Whether both sets are for the same rule and part of the site."""
        return all(getattr(self, name) == getattr(other, name) for name in _SCOPE)

    def overlaps(self, other: ThresholdSet) -> bool:
        """Whether a subject can be in both parts of the site."""
        pairs = ((getattr(self, part), getattr(other, part)) for part in _PARTS)
        return all(not first or not second or first == second for first, second in pairs)

    def has_same_content(self, other: ThresholdSet) -> bool:
        """Whether thresholds, advice and status are equal."""
        names = ("thresholds", "advice", "is_on")
        return all(getattr(self, name) == getattr(other, name) for name in names)

    @property
    def scope(self) -> str:
        """The part of the site in words."""
        parts = [
            f"cluster {self.cluster}" if self.cluster else "",
            f"queue {self.queue}" if self.queue else "",
            f"filesystem {self.filesystem}" if self.filesystem else "",
        ]
        return ", ".join(filter(None, parts)) or "everywhere"


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
