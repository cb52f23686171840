"""The policy, silences, and the reasons of decisions."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.postgres.fields import ArrayField
from django.db import models

from ioportal.alerts.decide import Mode, Verdict
from ioportal.flags.models import Case
from ioportal.site.models import Filesystem


class CaseDecision(models.Model):
    """Why a case was mailed about or not; a row for each change of the reason."""

    case = models.ForeignKey(Case, models.CASCADE, related_name="mail_decisions")
    verdict = models.CharField(
        max_length=16, choices=[(each.value, each.value) for each in Verdict]
    )
    reason = models.CharField(max_length=300)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(name="casedecision_latest", fields=["case", "-id"])]

    def __str__(self) -> str:
        return f"case {self.case_id}: {self.verdict}, {self.reason}"


class Silence(models.Model):
    """No mails until a time; empty fields match everything."""

    recipient = models.CharField(max_length=64, blank=True)
    rule = models.CharField(max_length=64, blank=True)
    filesystem = models.ForeignKey(Filesystem, models.CASCADE, null=True, blank=True)
    until = models.DateTimeField()
    reason = models.CharField(max_length=200)
    created_by = models.CharField(max_length=150, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-until"]

    def __str__(self) -> str:
        return f"silence until {self.until:%Y-%m-%d %H:%M}: {self.reason}"


class MailPolicy(models.Model):
    """When mails are sent: `ioportal.alerts.decide.Policy`. Immutable: the latest applies."""

    default_mode = models.CharField(
        max_length=16, choices=[(each.value, each.value) for each in Mode], default=Mode.APPROVAL
    )
    modes = models.JSONField(default=dict, blank=True)  # by rule
    wait = models.DurationField()
    interval = models.DurationField()
    repeat = models.DurationField()
    quiet_from = models.PositiveSmallIntegerField(default=0)
    quiet_until = models.PositiveSmallIntegerField(default=0)
    on_weekends = models.BooleanField(default=True)
    holidays = ArrayField(models.DateField(), default=list, blank=True)
    daily_cap = models.PositiveSmallIntegerField()
    hourly_brake = models.PositiveSmallIntegerField()
    excluded = ArrayField(models.CharField(max_length=64), default=list, blank=True)
    follow_up_after = models.DurationField(default=timedelta(days=7))  # without an improvement
    reason = models.CharField(max_length=200)
    set_by = models.CharField(max_length=150, editable=False)
    set_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-pk"]
        verbose_name_plural = "mail policies"

    def __str__(self) -> str:
        return f"mail policy of {self.set_at:%Y-%m-%d}"
