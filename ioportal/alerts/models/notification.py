"""Notifications: the outbox."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Self

from django.contrib.postgres.indexes import GinIndex, OpClass
from django.db import models
from django.db.models import Q
from django.db.models.functions import Upper
from django.dispatch import receiver

from ioportal.alerts.models.channel import Channel
from ioportal.alerts.models.policy import CaseDecision
from ioportal.alerts.outcomes import Outcome, Step
from ioportal.findings.models import Case, case_joined
from ioportal.site.models import Filesystem

if TYPE_CHECKING:
    from datetime import datetime

    from django.contrib.auth.models import AnonymousUser, User


class NotificationQuerySet(models.QuerySet["Notification"]):
    """Queries of notifications."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Notifications `user` may see: staff see all, others their own."""
        if user.is_staff:
            return self
        if not user.is_authenticated:  # without a name, as the recipients of copies
            return self.none()
        own = self.to_users().filter(recipient=user.get_username())
        return own.filter(state__in=Notification.SHOWN_TO_USERS)

    def to_users(self) -> Self:
        """Mails to users, without notifications of channels."""
        return self.filter(channel=None)

    def due(self) -> Self:
        """Notifications to send now, the longest waiting first."""
        due = self.filter(
            state=Notification.State.WAITING, next_attempt_at__lte=models.functions.Now()
        )
        return due.order_by("next_attempt_at", "pk")


class Notification(models.Model):
    """A mail to one recipient, or a message to a channel, as it is sent; a row of the outbox.

    Delivery changes states by conditional updates, so that a crash neither loses nor repeats it:
    waiting → sending (a worker talks to the server) → ending (all but the end of the message was
    sent) → sent. Only a crash or a lost connection while ending makes it uncertain.
    """

    class Kind(models.TextChoices):
        """Its subject."""

        CASES = "cases", "cases"
        FOLLOW_UP = "follow-up", "follow-up"  # what changed since a mail about cases
        DIGEST = "digest", "digest"
        REPORT = "report", "report"  # of the recipient's own jobs, on request
        COPY = "copy", "copy"  # for admins, of a mail about cases
        CHANNEL = "channel", "channel"  # a message to a channel

    class State(models.TextChoices):
        """State of delivery."""

        DRAFT = "draft", "draft"  # a member of staff decides
        WAITING = "waiting", "waiting"
        SENDING = "sending", "sending"
        ENDING = "ending", "ending"
        SENT = "sent", "sent"  # the server accepted it
        FAILED = "failed", "failed"  # refused for good, or bounced
        UNCERTAIN = "uncertain", "uncertain"  # the server's answer was lost: never repeated
        DISCARDED = "discarded", "discarded"  # by staff, or because it was no longer fit

    SHOWN_TO_USERS = (State.SENT, State.UNCERTAIN)
    BOUNCED = "Bounced: "  # at the start of the response: a server had accepted it

    token = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    kind = models.CharField(max_length=16, choices=Kind, default=Kind.CASES)
    # Of a mail that must be written once, such as the digest of a day for a recipient.
    key = models.CharField(max_length=200, blank=True)
    follows = models.ForeignKey("self", models.SET_NULL, null=True, related_name="follow_ups")
    channel = models.ForeignKey(Channel, models.PROTECT, null=True, related_name="notifications")
    recipient = models.CharField(max_length=64, blank=True)  # user or channel; "": neither
    address = models.EmailField(blank=True)  # "": the channel has a URL
    filesystem = models.ForeignKey(Filesystem, models.SET_NULL, null=True, related_name="+")
    subject = models.CharField(max_length=200)
    text = models.TextField()
    html = models.TextField(blank=True)
    reason = models.CharField(max_length=200)  # why it was written

    state = models.CharField(max_length=16, choices=State)
    created_at = models.DateTimeField(auto_now_add=True)
    requested_by = models.CharField(max_length=150, blank=True)  # staff; "": by a decision
    released_by = models.CharField(max_length=150, blank=True)  # or discarded; "": automatically
    released_at = models.DateTimeField(null=True)  # null: it was no draft
    next_attempt_at = models.DateTimeField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    claim = models.UUIDField(null=True)  # of the worker that sends it
    response = models.CharField(max_length=500, blank=True)  # last answer of the server
    finished_at = models.DateTimeField(null=True)
    # The last follow-up: `ioportal.alerts.follow_ups`.
    step = models.CharField(
        max_length=16, choices=[(each.value, each.value) for each in Step], blank=True
    )
    stepped_at = models.DateTimeField(null=True)

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
            # The list of mails: latest first, also by state, and search.
            models.Index(name="notification_recent", fields=["-created_at", "-id"]),
            models.Index(name="notification_state", fields=["state", "-created_at"]),
            models.Index(Upper("address"), name="notification_address"),
            GinIndex(
                OpClass(Upper("subject"), "gin_trgm_ops"),
                OpClass(Upper("text"), "gin_trgm_ops"),
                name="notification_words",
            ),
            # Retention.
            models.Index(name="notification_text", fields=["finished_at"], condition=~Q(text="")),
        ]
        constraints = [
            models.UniqueConstraint(name="notification_key", fields=["key"], condition=~Q(key="")),
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

    @property
    def issued_at(self) -> datetime:
        """When it was written, or released by staff: the date of the mail."""
        return self.released_at or self.created_at


class NotificationCase(models.Model):
    """A case that a notification is about, with its figures at that time."""

    notification = models.ForeignKey(Notification, models.CASCADE, related_name="cases")
    case = models.ForeignKey(Case, models.CASCADE, related_name="notifications")
    value = models.FloatField()
    rule_version = models.PositiveSmallIntegerField()
    request = models.CharField(max_length=600, blank=True)  # to the recipient; "": none
    # What changed since the mail: `ioportal.alerts.effects`.
    outcome = models.CharField(
        max_length=16,
        choices=[(each.value, each.value) for each in Outcome],
        default=Outcome.UNKNOWN,
    )
    effect = models.TextField(blank=True)  # in words

    class Meta:
        constraints = [
            models.UniqueConstraint(name="notification_case", fields=["notification", "case"])
        ]

    def __str__(self) -> str:
        return f"case {self.case_id} in notification {self.notification_id}"


class NotificationImage(models.Model):
    """An image in the HTML of a notification."""

    notification = models.ForeignKey(Notification, models.CASCADE, related_name="images")
    name = models.SlugField(max_length=40)
    png = models.BinaryField()

    class Meta:
        constraints = [
            models.UniqueConstraint(name="notification_image", fields=["notification", "name"])
        ]

    def __str__(self) -> str:
        return f"{self.name} of notification {self.notification_id}"


class Answer(models.Model):
    """What a recipient answered through a link of the mail."""

    class Kind(models.TextChoices):
        """The links of a mail."""

        WORKING = "working", "I am on it"
        FIXED = "fixed", "It is fixed"
        WRONG = "wrong", "This is wrong"

    notification = models.ForeignKey(Notification, models.CASCADE, related_name="answers")
    kind = models.CharField(max_length=16, choices=Kind)
    comment = models.TextField(blank=True, max_length=1_000)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.get_kind_display()}, to notification {self.notification_id}"


class DeliveryAttempt(models.Model):
    """An attempt to send a notification, and how it ended."""

    notification = models.ForeignKey(Notification, models.CASCADE, related_name="delivery_log")
    at = models.DateTimeField(auto_now_add=True)  # its end
    outcome = models.CharField(  # of the notification after the attempt
        max_length=16, choices=Notification.State
    )
    response = models.CharField(max_length=500, blank=True)  # of the mail server

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"notification {self.notification_id}: {self.outcome}, {self.response}"


@receiver(case_joined)
def _move_mails(emptied: Case, case: Case, **_: Any) -> None:
    """Move the mails and decisions about a case; a mail about both is about one."""
    about_both = NotificationCase.objects.filter(case=case).values("notification")
    mails = NotificationCase.objects.filter(case=emptied)
    mails.exclude(notification__in=list(about_both.values_list("notification", flat=True))).update(
        case=case
    )
    CaseDecision.objects.filter(case=emptied).update(case=case)
