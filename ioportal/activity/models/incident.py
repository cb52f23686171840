"""Incidents that staff keep, and what users report."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Self

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.db.models import Exists, F, OuterRef, Q
from django.utils import timezone

from ioportal.site.models.infrastructure import Filesystem, Server

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import User


class Incident(models.Model):
    """An interval of a metadata server that is worth to be remembered.

    Its title and notes are for staff, who may name people in them.
    """

    title = models.CharField(max_length=120)
    server = models.ForeignKey(Server, models.CASCADE, related_name="incidents")
    start = models.DateTimeField()
    end = models.DateTimeField()
    notes = models.TextField(blank=True, max_length=10_000)
    # What its windows of 10 s told before they were dropped (`ioportal.activity.incidents`).
    figures = models.JSONField(null=True, editable=False, encoder=DjangoJSONEncoder)
    kept_by = models.CharField(max_length=150, editable=False)
    kept_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-start", "-pk"]
        constraints = [
            models.CheckConstraint(
                name="incident_ends_after_start",
                condition=Q(end__gt=F("start")),
                violation_error_message="It must end after it starts.",
            ),
        ]
        indexes = [
            # What a report falls into, and what is suggested no more.
            models.Index(name="incident_of_server", fields=["server", "start"]),
        ]

    def __str__(self) -> str:
        return self.title


class ReportQuerySet(models.QuerySet["Report"]):
    """Questions about what users report."""

    def visible_to(self, user: User) -> Self:
        """Staff read all, others their own."""
        return self if user.is_staff else self.filter(reporter=user)

    def about(self, filesystem: int, start: datetime, end: datetime) -> Self:
        """Those that belong to [start, end) on a filesystem, give or take a while."""
        return self.filter(
            filesystem=filesystem, at__gte=start - Report.EARLY, at__lt=end + Report.LATE
        )

    def without_incident(self) -> Self:
        """Those that belong to no incident that was kept."""
        kept = Incident.objects.filter(
            server__filesystem=OuterRef("filesystem"),
            start__lte=OuterRef("at") + Report.EARLY,
            end__gt=OuterRef("at") - Report.LATE,
        )
        return self.exclude(Exists(kept))


class Report(models.Model):
    """What a user says of a filesystem at a moment; it belongs to incidents by its time."""

    # People tell the time from memory, and report once they have waited.
    EARLY, LATE = timedelta(minutes=10), timedelta(minutes=30)

    filesystem = models.ForeignKey(Filesystem, models.CASCADE, related_name="reports")
    at = models.DateTimeField("when", default=timezone.now)
    words = models.TextField("what happened", max_length=1_000)
    reporter = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="reports", editable=False
    )
    reported_at = models.DateTimeField(auto_now_add=True)

    objects = ReportQuerySet.as_manager()

    class Meta:
        ordering = ["-at", "-pk"]
        indexes = [
            # Those that belong to an incident.
            models.Index(name="report_of_filesystem", fields=["filesystem", "at"]),
            # One's own, and how many of a day.
            models.Index(name="report_of_reporter", fields=["reporter", "-reported_at"]),
        ]

    def __str__(self) -> str:
        return f"{self.reporter} on {self.filesystem}"

    @property
    def since(self) -> datetime:
        """From when on something may have happened that it tells of."""
        return self.at - self.LATE

    @property
    def until(self) -> datetime:
        """Up to when something may have happened that it tells of."""
        return self.at + self.EARLY

    def belongs_to(self, incident: Incident) -> bool:
        """Whether it tells of an incident: on its filesystem, at about its time."""
        is_its_time = incident.start <= self.until and incident.end > self.since
        return is_its_time and incident.server.filesystem_id == self.filesystem_id
