"""How long RPCs of a kind take where a server is calm: as reckoned, and as somebody decided."""

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
    """What is usual for one kind of RPC by the end of a period; with too few windows there is none.

    Times are of one RPC from its arrival to its end.
    """

    period = models.ForeignKey(BaselinePeriod, models.CASCADE)
    service = models.ForeignKey(Service, models.CASCADE)
    opcode = models.SmallIntegerField()
    baseline_us = models.FloatField()
    windows = models.IntegerField()  # the calm ones, of which it is the median

    class Meta:
        constraints = [
            models.UniqueConstraint(name="baseline", fields=["period", "service", "opcode"]),
        ]

    def __str__(self) -> str:
        return f"{opcodes.name_of(self.opcode)}, {self.service}: {self.baseline_us:.0f} µs"


class PinnedBaselineQuerySet(models.QuerySet["PinnedBaseline"]):
    """Questions about pinned baselines."""

    def at(self, moment: datetime) -> Self:
        """Those that hold at a moment."""
        return self.filter(since__lte=moment).filter(Q(until=None) | Q(until__gt=moment))


class PinnedBaseline(models.Model):
    """What somebody decided to be usual, from a moment on; it goes before what is reckoned."""

    server = models.ForeignKey(Server, models.CASCADE)
    service = models.ForeignKey(Service, models.CASCADE)
    opcode = models.SmallIntegerField()
    baseline_us = models.FloatField("baseline [µs]")
    since = models.DateTimeField(default=timezone.now)
    until = models.DateTimeField(null=True, blank=True, help_text="Empty: it holds.")
    why = models.CharField(max_length=200, blank=True)
    pinned_by = models.CharField(max_length=150, editable=False)
    pinned_at = models.DateTimeField(auto_now_add=True)

    objects = PinnedBaselineQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="pinnedbaseline_one_holds",
                fields=["server", "service", "opcode"],
                condition=Q(until=None),
                violation_error_message="One is pinned already: end that one first.",
            ),
            models.CheckConstraint(
                name="pinnedbaseline_ends_after_start",
                condition=Q(until=None) | Q(until__gte=F("since")),
                violation_error_message="It must end after it begins.",
            ),
            models.CheckConstraint(
                name="pinnedbaseline_takes_time",
                condition=Q(baseline_us__gt=0),
                violation_error_message="An RPC takes time.",
            ),
        ]

    def __str__(self) -> str:
        name = opcodes.name_of(self.opcode)
        return f"{name}, {self.service} on {self.server}: {self.baseline_us:.0f} µs"
