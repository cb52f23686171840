"""The limits that a site sets, with their history."""

from __future__ import annotations

from typing import Self

from django.db import models
from django.db.models import Q

from ioportal.site.models import Cluster, Filesystem

_PARTS = ("cluster_id", "filesystem_id", "queue")  # what of the site limits are for
_SCOPE = ("rule", *_PARTS)


class LimitSetQuerySet(models.QuerySet["LimitSet"]):
    """Questions about limits."""

    def of_place(self, one: LimitSet) -> Self:
        """Those of the same rule and scope."""
        return self.filter(
            rule=one.rule,
            cluster=one.cluster_id,
            filesystem=one.filesystem_id,
            queue=one.queue,
        )

    def in_force(self) -> Self:
        """The newest of each rule and scope: it holds."""
        return self.order_by(*_SCOPE, "-pk").distinct(*_SCOPE)


class LimitSet(models.Model):
    """A rule's limits for a part of the site, from a moment on. Never changed: a new one follows.

    A limit that is not named is that of the next wider part, and at last the rule's own.
    """

    rule = models.CharField(max_length=64)
    cluster = models.ForeignKey(Cluster, models.CASCADE, null=True, blank=True)
    filesystem = models.ForeignKey(Filesystem, models.CASCADE, null=True, blank=True)
    queue = models.CharField(max_length=128, blank=True)
    limits = models.JSONField(default=dict, blank=True)
    advice = models.TextField(blank=True, max_length=2_000)  # "": that of the next wider part
    is_on = models.BooleanField(null=True)  # null: as the next wider part
    why = models.CharField(max_length=200)
    set_by = models.CharField(max_length=150, editable=False)
    set_at = models.DateTimeField(auto_now_add=True)

    objects = LimitSetQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        indexes = [
            # What holds, and what held before.
            models.Index(
                name="limitset_scope", fields=["rule", "cluster", "filesystem", "queue", "-id"]
            ),
        ]
        constraints = [
            models.CheckConstraint(
                name="limitset_queue_of_cluster",
                condition=Q(queue="") | Q(cluster__isnull=False),
                violation_error_message="A queue is of a cluster: name it too.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.rule}: {self.scope}"

    @property
    def is_everywhere(self) -> bool:
        """Whether it is for all of the site."""
        return not (self.cluster_id or self.filesystem_id or self.queue)

    @property
    def is_withdrawn(self) -> bool:
        """Whether it says nothing: what the next wider part says holds there again."""
        return not self.limits and not self.advice and self.is_on is None

    def is_in_place_of(self, other: LimitSet) -> bool:
        """Whether it is for the same rule and part of the site."""
        return all(getattr(self, name) == getattr(other, name) for name in _SCOPE)

    def overlaps(self, other: LimitSet) -> bool:
        """Whether something may be in the parts of the site of both."""
        both = ((getattr(self, part), getattr(other, part)) for part in _PARTS)
        return all(not mine or not yours or mine == yours for mine, yours in both)

    def says(self, other: LimitSet) -> bool:
        """Whether it says the same as another."""
        return (self.limits, self.advice, self.is_on) == (other.limits, other.advice, other.is_on)

    @property
    def scope(self) -> str:
        """The part of the site in words."""
        parts = [
            f"cluster {self.cluster}" if self.cluster else "",
            f"queue {self.queue}" if self.queue else "",
            f"filesystem {self.filesystem}" if self.filesystem else "",
        ]
        return ", ".join(filter(None, parts)) or "everywhere"
