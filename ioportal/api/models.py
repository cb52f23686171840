"""Tokens: who may call the API, and for what."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta
from typing import TYPE_CHECKING, Self

from django.db import models
from django.db.models import Q

from ioportal.site.models import Source

if TYPE_CHECKING:
    from datetime import datetime

_PREFIX = "ioportal_"  # so that scanners of published code can tell what leaked
_SECRET_BYTES = 32
_USED_WITHIN = timedelta(minutes=1)  # not worth another write


class TokenQuerySet(models.QuerySet["Token"]):
    """Questions about tokens."""

    def valid(self, now: datetime) -> Self:
        """Tokens that are neither revoked nor expired."""
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=now), revoked_at=None)

    def for_secret(self, secret: str, now: datetime) -> Token | None:
        """Return the valid token of a secret, and note that it was used."""
        found = self.valid(now).select_related("source").filter(digest=_digest(secret)).first()
        if found and (found.last_used_at is None or now - found.last_used_at > _USED_WITHIN):
            self.filter(pk=found.pk).update(last_used_at=now)
        return found

    def issue(self, scope: Token.Scope, **facts: object) -> tuple[Token, str]:
        """Create a token; return it and its secret, which is kept nowhere."""
        secret = _PREFIX + secrets.token_urlsafe(_SECRET_BYTES)
        token = self.model(scope=scope, digest=_digest(secret), **facts)
        token.full_clean()
        token.save()
        return token, secret


class Token(models.Model):
    """A right to call the API. Its secret is known to its bearer alone: here is its digest.

    The secret is random and long, so that one round of SHA-256 is all it takes.
    """

    class Scope(models.TextChoices):
        """What it is a right to."""

        INGEST = "ingest", "send batches of one source"
        METRICS = "metrics", "read the portal's metrics"

    name = models.CharField(max_length=128, blank=True)  # whose it is, for people
    scope = models.CharField(max_length=8, choices=Scope)
    source = models.ForeignKey(Source, models.CASCADE, null=True, blank=True, related_name="tokens")
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    objects = TokenQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="token_of_a_source",
                condition=Q(scope="ingest", source__isnull=False)
                | ~Q(scope="ingest") & Q(source__isnull=True),
                violation_error_message="A token to send batches is of one source.",
            )
        ]

    def __str__(self) -> str:
        return f"token {self.pk}"


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
