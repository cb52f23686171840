"""Channels of notifications to staff and teams."""

from __future__ import annotations

from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import models
from django.utils import timezone

from ioportal.alerts.delivery import channel_networks
from ioportal.findings.models import Flag
from ioportal.rules import BY_CODE
from ioportal.site.models import Filesystem

if TYPE_CHECKING:
    from datetime import datetime

    from ioportal.findings.models import Case

_OWN_HOSTS = {"localhost", "127.0.0.1", "::1"}


class Channel(models.Model):
    """A service that is notified of cases when they open and when they grow to abuse."""

    class Kind(models.TextChoices):
        """How it is notified."""

        WEBHOOK = "webhook", "webhook"  # JSON with a signature
        CHAT = "chat", "chat"  # an incoming webhook of Slack or Mattermost
        TICKET = "ticket", "ticket"  # a mail to a ticket system

    name = models.CharField(max_length=64, unique=True)
    kind = models.CharField(max_length=16, choices=Kind)
    address = models.CharField(
        max_length=500, help_text="URL that begins with https://, or for tickets a mail address"
    )
    secret = models.CharField(
        max_length=200, default=token_urlsafe, help_text="Signs the requests of a webhook"
    )
    min_severity = models.PositiveSmallIntegerField(
        "minimum severity", choices=Flag.Severity.choices[1:], default=Flag.Severity.WARNING
    )
    rules = ArrayField(
        models.CharField(max_length=64),
        default=list,
        blank=True,
        help_text="Codes with commas; empty: all",
    )
    filesystem = models.ForeignKey(
        Filesystem, models.CASCADE, null=True, blank=True, help_text="Empty: all"
    )
    enabled = models.BooleanField(default=True)
    enabled_at = models.DateTimeField(null=True, editable=False)  # earlier events do not count

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Store it with the time since which it is enabled."""
        if not self.enabled:
            self.enabled_at = None
        elif self.enabled_at is None:
            self.enabled_at = timezone.now()
        super().save(*args, **kwargs)

    def clean(self) -> None:
        """Check that the address fits the kind, and that all rules exist."""
        errors = {}
        try:
            if self.kind == self.Kind.TICKET:
                validate_email(self.address)
            else:
                _validate_url(self.address, is_called=self.enabled)
        except ValidationError as error:
            errors["address"] = error.messages
        if unknown := sorted(set(self.rules) - BY_CODE.keys()):
            errors["rules"] = [f"Unknown rules: {', '.join(unknown)}."]
        if errors:
            raise ValidationError(errors)

    def accepts(self, case: Case, changed_at: datetime) -> bool:
        """Return whether a case passes its filters, and changed while the channel was enabled."""
        return (
            self.enabled_at is not None
            and changed_at >= self.enabled_at
            and case.severity >= self.min_severity
            and (not self.rules or case.rule in self.rules)
            and self.filesystem_id in {None, case.filesystem_id}
        )


def _validate_url(url: str, *, is_called: bool) -> None:
    try:
        parts = urlsplit(url)
        is_valid = bool(parts.hostname) and parts.username is None and parts.port != 0
    except ValueError:
        is_valid = False
    if not (is_valid and url.isascii() and url.isprintable() and " " not in url):
        raise ValidationError("This is not a URL without a user name.")
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _OWN_HOSTS):
        raise ValidationError("The URL must begin with https://.")
    # A channel that is not called may keep its address: else staff could not disable it.
    addresses = channel_networks.literal(parts.hostname or "") if is_called else []
    if objection := channel_networks.objection(addresses):
        raise ValidationError(objection)
