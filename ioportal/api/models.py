"""Tokens of the API and their scopes."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db import DEFAULT_DB_ALIAS, models
from django.db.models import Case, F, Q, Value, When

from ioportal.core.postgres.compiled import Compiled, Parameter
from ioportal.site.models import Source

if TYPE_CHECKING:
    from datetime import datetime

_PREFIX = "ioportal_"  # lets secret scanners recognise a leaked token
_SECRET_BYTES = 32
_USE_RECORDED_EVERY = timedelta(minutes=1)
_VALID = "valid"


class TokenQuerySet(models.QuerySet["Token"]):
    """Questions about tokens."""

    def with_states(self, now: datetime | Parameter) -> Self:
        """Annotate `state`; a token is *suspended* while its user or maker lacks the rights."""
        may_use_it = Q(user=None) | Q(user__is_active=True) & (
            ~Q(scope=Token.Scope.WRITE) | Q(user__is_staff=True)
        )
        # As `Token.clean` when it is made; a user or maker may gain and lose rights later.
        is_of_plain_user = Q(user__is_staff=False, user__is_superuser=False)
        may_make_it = Q(maker__is_active=True, maker__is_staff=True) & (
            Q(maker__is_superuser=True) | Q(user=None) | is_of_plain_user
        )
        may_use_it &= Q(maker=None) | Q(maker=F("user")) | may_make_it
        return self.annotate(
            state=Case(
                When(revoked_at__isnull=False, then=Value("revoked")),
                When(expires_at__lte=now, then=Value("expired")),
                When(may_use_it, then=Value(_VALID)),
                default=Value("suspended"),
            )
        )

    def valid(self, now: datetime | Parameter) -> Self:
        """Tokens that permit requests."""
        return self.with_states(now).filter(state=_VALID)

    def revoke(self, now: datetime) -> int:
        """Revoke tokens; return the number of tokens that changed."""
        return self.filter(revoked_at=None).update(revoked_at=now)

    def issue(self, scope: Token.Scope, **facts: object) -> tuple[Token, str]:
        """Create a token; return it with its secret, which is not stored."""
        secret = _PREFIX + secrets.token_urlsafe(_SECRET_BYTES)
        token = self.model(scope=scope, digest=_digest(secret), **facts)
        token.full_clean()
        token.save()
        return token, secret


class Token(models.Model):
    """A right to call the API; only the digest of its secret is stored.

    The secret is long and random, so one round of SHA-256 suffices.
    """

    class Scope(models.TextChoices):
        """The requests that a token permits."""

        INGEST = "ingest", "send batches of one source"
        METRICS = "metrics", "read the portal's metrics"
        BOUNCES = "bounces", "report bounced mails"
        READ = "read", "read what its user may see"
        WRITE = "write", "store PanDA jobs, mitigations and experiments"

    name = models.CharField(max_length=128, blank=True)  # label, such as the host of the agent
    scope = models.CharField(max_length=8, choices=Scope)
    source = models.ForeignKey(Source, models.CASCADE, null=True, blank=True, related_name="tokens")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, blank=True, related_name="tokens"
    )
    # Who made it on a page. Null: the command line, which has all rights.
    maker = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, blank=True, related_name="made_tokens"
    )
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    state: str  # with `with_states` only

    objects = TokenQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="token_of_a_source",
                condition=Q(scope="ingest", source__isnull=False)
                | ~Q(scope="ingest") & Q(source__isnull=True),
                violation_error_message="A token to send batches belongs to one source.",
            ),
            models.CheckConstraint(
                name="token_of_a_user",
                condition=Q(scope__in=("read", "write"), user__isnull=False)
                | ~Q(scope__in=("read", "write")) & Q(user__isnull=True),
                violation_error_message="A token to read or write data belongs to one user.",
            ),
        ]

    def __str__(self) -> str:
        return f"token {self.pk}"

    @classmethod
    def for_secret(cls, secret: str, now: datetime) -> Token | None:
        """Return the valid token of a secret and record its use."""
        for token in _valid_by_digest().run(digest=_digest(secret), now=now):
            if token.last_used_at is None or now - token.last_used_at > _USE_RECORDED_EVERY:
                cls.objects.filter(pk=token.pk).update(last_used_at=now)
            return token
        return None

    def clean(self) -> None:
        """Refuse writes by users who are not staff, and rights that the maker lacks."""
        if self.scope == self.Scope.WRITE and self.user and not self.user.is_staff:
            raise ValidationError("A token to write data belongs to a member of staff.")
        if not self.maker or not self.user or self.maker == self.user:
            return
        if (self.user.is_staff or self.user.is_superuser) and not self.maker.is_superuser:
            raise ValidationError(
                "Only superusers create tokens of other members of staff. Enter your own name."
            )


@cache
def _valid_by_digest() -> Compiled[Token]:
    tokens = Token.objects.all().valid(Parameter("now", models.DateTimeField()))
    digest = Parameter("digest", models.TextField())
    own, sources, users = _columns(Token), _columns(Source), _columns(get_user_model())
    names = (*own, *(f"source__{name}" for name in sources), *(f"user__{name}" for name in users))

    def token(row: tuple[Any, ...]) -> Token:
        """Return the token of a row, with its source and user."""
        values = iter(row)
        made = Token.from_db(DEFAULT_DB_ALIAS, own, list(islice(values, len(own))))
        source, user = list(islice(values, len(sources))), list(values)
        made.source = Source.from_db(DEFAULT_DB_ALIAS, sources, source) if made.source_id else None
        made.user = (
            get_user_model().from_db(DEFAULT_DB_ALIAS, users, user) if made.user_id else None
        )
        return made

    return Compiled(tokens.filter(digest=digest).values_list(*names), token, prepare=True)


def _columns(model: type[models.Model]) -> list[str]:
    return [field.attname for field in model._meta.concrete_fields]  # noqa: SLF001  (documented)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
