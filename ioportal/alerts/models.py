"""Notifications, which are the outbox; reasons of decisions; silences and the policy."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Self

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from ioportal.alerts.decide import Mode, Verdict
from ioportal.flags.models import Case
from ioportal.site.models import Filesystem

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User


class NotificationQuerySet(models.QuerySet["Notification"]):
    """Queries of notifications."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Notifications `user` may see: staff see all, others those that were sent to them."""
        if user.is_staff:
            return self
        sent = (Notification.State.SENT, Notification.State.UNCERTAIN)
        return self.filter(recipient=user.get_username(), state__in=sent)

    def due(self) -> Self:
        """Notifications to send now, the longest waiting first."""
        due = self.filter(
            state=Notification.State.WAITING, next_attempt_at__lte=models.functions.Now()
        )
        return due.order_by("next_attempt_at", "pk")


class Notification(models.Model):
    """A mail to one recipient about some cases, as it is sent; a row of the outbox.

    Delivery changes states by conditional updates, so that a crash neither loses nor repeats it:
    waiting → sending (a worker talks to the mail server) → ending (all but the end of the message
    was sent) → sent. Only a crash or a lost connection while ending makes it uncertain.
    """

    class State(models.TextChoices):
        """State of delivery."""

        DRAFT = "draft", "draft"  # a member of staff decides
        WAITING = "waiting", "waiting"
        SENDING = "sending", "sending"
        ENDING = "ending", "ending"
        SENT = "sent", "sent"  # the mail server accepted it
        FAILED = "failed", "failed"  # refused for good
        UNCERTAIN = "uncertain", "uncertain"  # the server's answer was lost: never repeated
        DISCARDED = "discarded", "discarded"  # by a member of staff

    token = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    recipient = models.CharField(max_length=64)  # user name
    address = models.EmailField()
    filesystem = models.ForeignKey(Filesystem, models.SET_NULL, null=True, related_name="+")
    subject = models.CharField(max_length=200)
    text = models.TextField()
    html = models.TextField(blank=True)
    reason = models.CharField(max_length=200)  # why it was written

    state = models.CharField(max_length=16, choices=State)
    created_at = models.DateTimeField(auto_now_add=True)
    released_by = models.CharField(max_length=150, blank=True)  # "": automatically
    next_attempt_at = models.DateTimeField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    claim = models.UUIDField(null=True)  # of the worker that sends it
    response = models.CharField(max_length=500, blank=True)  # last answer of the mail server
    finished_at = models.DateTimeField(null=True)

    objects = NotificationQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-pk"]
        indexes = [
            models.Index(
                name="notification_due",
                fields=["next_attempt_at", "id"],
                condition=Q(state="waiting"),
            ),
            models.Index(name="notification_recipient", fields=["recipient", "-created_at"]),
        ]
        constraints = [
            models.CheckConstraint(
                name="notification_waiting_has_time",
                condition=~Q(state="waiting") | Q(next_attempt_at__isnull=False),
            ),
            models.CheckConstraint(
                name="notification_sending_has_claim",
                condition=~Q(state__in=["sending", "ending"]) | Q(claim__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.subject} to {self.recipient}"


class NotificationCase(models.Model):
    """A case that a notification is about, with its figures at that time."""

    notification = models.ForeignKey(Notification, models.CASCADE, related_name="cases")
    case = models.ForeignKey(Case, models.CASCADE, related_name="notifications")
    value = models.FloatField()
    rule_version = models.PositiveSmallIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(name="notification_case", fields=["notification", "case"])
        ]

    def __str__(self) -> str:
        return f"case {self.case_id} in notification {self.notification_id}"


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
    reason = models.CharField(max_length=200)
    set_by = models.CharField(max_length=150, editable=False)
    set_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-pk"]
        verbose_name_plural = "mail policies"

    def __str__(self) -> str:
        return f"mail policy of {self.set_at:%Y-%m-%d}"
