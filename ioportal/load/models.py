"""Baselines, saved incidents, and problem reports of users."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Self

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.db.models import Exists, F, OuterRef, Q
from django.utils import timezone

from collectors.lustre import opcodes
from ioportal.site.models.infrastructure import Filesystem, Server, Service
from ioportal.telemetry.models import BaselinePeriod

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import User


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


class Incident(models.Model):
    """A saved interval of a metadata server.

    Only staff see its title and notes, which may name people.
    """

    title = models.CharField(max_length=120)
    server = models.ForeignKey(Server, models.CASCADE, related_name="incidents")
    start = models.DateTimeField()
    end = models.DateTimeField()
    notes = models.TextField(blank=True, max_length=10_000)
    # The stored analysis, once its 10 s windows have expired (`ioportal.load.incidents`).
    figures = models.JSONField(null=True, editable=False, encoder=DjangoJSONEncoder)
    saved_by = models.CharField(max_length=150, editable=False)
    saved_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-start", "-pk"]
        constraints = [
            models.CheckConstraint(
                name="incident_ends_after_start",
                condition=Q(end__gt=F("start")),
                violation_error_message="The end must be after the start.",
            ),
        ]
        indexes = [
            # Incidents of a report; suggestions that are already saved.
            models.Index(name="incident_of_server", fields=["server", "start"]),
        ]

    def __str__(self) -> str:
        return self.title


class ReportQuerySet(models.QuerySet["Report"]):
    """Queries of problem reports."""

    def visible_to(self, user: User) -> Self:
        """Reports `user` may see: staff see all, others their own."""
        return self if user.is_staff else self.filter(reporter=user)

    def about(self, filesystem: int, start: datetime, end: datetime) -> Self:
        """Reports about [start, end) on a filesystem, with tolerance."""
        return self.filter(
            filesystem=filesystem, at__gte=start - Report.EARLY, at__lt=end + Report.LATE
        )

    def without_incident(self) -> Self:
        """Reports without a saved incident."""
        incidents = Incident.objects.filter(
            server__filesystem=OuterRef("filesystem"),
            start__lte=OuterRef("at") + Report.EARLY,
            end__gt=OuterRef("at") - Report.LATE,
        )
        return self.exclude(Exists(incidents))


class Report(models.Model):
    """A user's report of a problem on a filesystem; its time relates it to incidents."""

    # People report from memory, and after waiting for a while.
    EARLY, LATE = timedelta(minutes=10), timedelta(minutes=30)

    filesystem = models.ForeignKey(Filesystem, models.CASCADE, related_name="reports")
    at = models.DateTimeField("when", default=timezone.now)
    description = models.TextField(max_length=1_000)
    reporter = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="reports", editable=False
    )
    reported_at = models.DateTimeField(auto_now_add=True)

    objects = ReportQuerySet.as_manager()

    class Meta:
        ordering = ["-at", "-pk"]
        indexes = [
            # Reports of an incident.
            models.Index(name="report_of_filesystem", fields=["filesystem", "at"]),
            # A user's reports, and their number per day.
            models.Index(name="report_of_reporter", fields=["reporter", "-reported_at"]),
        ]

    def __str__(self) -> str:
        return f"{self.reporter} on {self.filesystem}"

    @property
    def since(self) -> datetime:
        """The earliest time of the reported problem."""
        return self.at - self.LATE

    @property
    def until(self) -> datetime:
        """The latest time of the reported problem."""
        return self.at + self.EARLY

    def belongs_to(self, incident: Incident) -> bool:
        """Whether the report matches an incident by filesystem and time."""
        overlaps = incident.start <= self.until and incident.end > self.since
        return overlaps and incident.server.filesystem_id == self.filesystem_id
