"""Baselines: usual RPC times of a server at low load, computed and pinned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from collectors.lustre import opcodes
from ioportal.site.models.infrastructure import Server, Service
from ioportal.telemetry.models import BaselinePeriod

if TYPE_CHECKING:
    from datetime import datetime


class Baseline(models.Model):
    """The usual time of one kind of RPC in a period; absent with too few windows.

    The time of an RPC is from its arrival to its end.
    """

    period = models.ForeignKey(BaselinePeriod, models.CASCADE)
    service = models.ForeignKey(Service, models.CASCADE)
    opcode = models.SmallIntegerField()
    baseline_us = models.FloatField()
    windows = models.IntegerField()  # number of windows of low load

    class Meta:
        constraints = [
            models.UniqueConstraint(name="baseline", fields=["period", "service", "opcode"]),
        ]

    def __str__(self) -> str:
        return f"{opcodes.name_of(self.opcode)}, {self.service}: {self.baseline_us:.0f} µs"


class PinnedBaselineQuerySet(models.QuerySet["PinnedBaseline"]):
    """Queries of pinned baselines."""

    def at(self, moment: datetime) -> Self:
        """Baselines valid at a time."""
        return self.filter(since__lte=moment).filter(Q(until=None) | Q(until__gt=moment))


class PinnedBaseline(models.Model):
    """A baseline set by an admin; it replaces the computed one while valid."""

    server = models.ForeignKey(Server, models.CASCADE)
    service = models.ForeignKey(Service, models.CASCADE)
    opcode = models.SmallIntegerField()
    baseline_us = models.FloatField("baseline [µs]")
    since = models.DateTimeField(default=timezone.now)
    until = models.DateTimeField(null=True, blank=True, help_text="Empty: still valid.")
    why = models.CharField(max_length=200, blank=True)
    pinned_by = models.CharField(max_length=150, editable=False)
    pinned_at = models.DateTimeField(auto_now_add=True)

    objects = PinnedBaselineQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="pinnedbaseline_single",
                fields=["server", "service", "opcode"],
                condition=Q(until=None),
                violation_error_message="A baseline is pinned already. Set its end first.",
            ),
            models.CheckConstraint(
                name="pinnedbaseline_ends_after_start",
                condition=Q(until=None) | Q(until__gte=F("since")),
                violation_error_message="The end must be after the start.",
            ),
            models.CheckConstraint(
                name="pinnedbaseline_takes_time",
                condition=Q(baseline_us__gt=0),
                violation_error_message="The baseline must be greater than 0.",
            ),
        ]

    def __str__(self) -> str:
        name = opcodes.name_of(self.opcode)
        return f"{name}, {self.service} on {self.server}: {self.baseline_us:.0f} µs"
