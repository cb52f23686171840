"""What decides about mails: the policy, silences, subscriptions and addresses that bounced."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from ioportal.alerts.decide import Mode, Verdict
from ioportal.findings.models import Case
from ioportal.site.models import Filesystem

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime


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
    """When mails are sent: `ioportal.alerts.decide.Policy`; who gets digests and copies.

    Immutable: the latest applies.
    """

    class Day(models.IntegerChoices):
        """Days of the week."""

        MONDAY, TUESDAY, WEDNESDAY, THURSDAY, FRIDAY, SATURDAY, SUNDAY = range(7)

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
    digest_readers = ArrayField(
        models.CharField(max_length=64),
        default=list,
        blank=True,
        help_text="User names of staff who get the daily digest, separated by commas. Their "
        "addresses are on the pages of users.",
    )
    project_digest_day = models.PositiveSmallIntegerField(
        choices=Day,
        null=True,
        blank=True,
        help_text="Day of the weekly digest to the contacts of projects. Empty: none.",
    )
    digest_hour = models.PositiveSmallIntegerField(
        default=7,
        validators=[MaxValueValidator(23)],
        help_text="Hour from which digests are sent, in the zone of the portal.",
    )
    copies_to = ArrayField(
        models.EmailField(max_length=120),
        default=list,
        blank=True,
        help_text="Addresses, separated by commas, that get a copy of each mail about cases that "
        "was sent without approval.",
    )
    reason = models.CharField(max_length=200)
    set_by = models.CharField(max_length=150, editable=False)
    set_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-pk"]
        verbose_name_plural = "mail policies"

    def __str__(self) -> str:
        return f"mail policy of {self.set_at:%Y-%m-%d}"

    def clean(self) -> None:
        """Refuse readers of digests who would get none."""
        staff = get_user_model().objects.filter(is_staff=True, username__in=self.digest_readers)
        known = set(staff.exclude(email="").values_list("username", flat=True))
        if unknown := sorted(set(self.digest_readers) - known):
            raise ValidationError(
                {"digest_readers": f"No staff with a mail address: {', '.join(unknown)}."}
            )


class BouncedAddressQuerySet(models.QuerySet["BouncedAddress"]):
    """Queries of bounced addresses."""

    def times(self, addresses: Iterable[str]) -> dict[str, datetime]:
        """Return when mails to addresses bounced, by address in lower case."""
        wanted = {address.lower() for address in addresses}
        return dict(self.filter(address__in=wanted).values_list("address", "bounced_at"))


class BouncedAddress(models.Model):
    """A mail address from which a mail bounced; no mail is written until staff delete the row."""

    address = models.EmailField(unique=True)  # in lower case
    bounced_at = models.DateTimeField(auto_now_add=True)
    reason = models.CharField(max_length=500)

    objects = BouncedAddressQuerySet.as_manager()

    class Meta:
        ordering = ["-bounced_at"]
        verbose_name_plural = "bounced addresses"

    def __str__(self) -> str:
        return self.address


class Subscription(models.Model):
    """Which mails a user wants about their own jobs."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="subscription", editable=False
    )
    job_reports = models.BooleanField("Report of each job that ends", default=False)
    min_node_hours = models.FloatField(
        "Only for jobs of at least (node-hours)", default=10, validators=[MinValueValidator(0)]
    )
    daily_cap = models.PositiveSmallIntegerField(
        "Reports in 24 hours, at most",
        default=5,
        validators=[MinValueValidator(1), MaxValueValidator(50)],
    )
    weekly_summary = models.BooleanField("Summary of my jobs each Monday", default=False)
    changed_at = models.DateTimeField(auto_now=True)  # jobs that ended before get no report

    def __str__(self) -> str:
        return f"mails that {self.user} asked for"
