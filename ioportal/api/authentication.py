"""Authentication of requests by ``Authorization: Token <secret>`` or ``Bearer <secret>``."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING

import structlog
from django.conf import settings
from django.contrib.auth.models import User
from ninja.security import APIKeyHeader

from ioportal.api.models import Token
from ioportal.api.problems import Problem
from ioportal.api.rate_limits import RateLimiter
from ioportal.core.throttling.addresses import client_address, network
from ioportal.core.throttling.counters import Limit, TooManyAttempts, count_attempt
from ioportal.telemetry.free_space import require_space

if TYPE_CHECKING:
    from django.http import HttpRequest

_INVALID_TOKENS = Limit("invalid tokens", 60, timedelta(seconds=5))  # per address
_KINDS = frozenset({"token", "bearer"})
_RATES = RateLimiter(settings.API_REQUESTS_PER_MINUTE)

log = structlog.get_logger()


class ScopedToken(APIKeyHeader):
    """A valid token with one of some scopes."""

    param_name = "Authorization"

    def __init__(self, *scopes: Token.Scope) -> None:
        super().__init__()
        self.scopes = scopes

    def authenticate(self, request: HttpRequest, key: str | None) -> Token:
        """Return the token; refuse a request without a valid one."""
        token = _of_secret(key) if key else None
        if token is None:
            _count_failure(request)
            raise Problem(
                401,
                "token",
                "Send a valid token: 'Authorization: Token ...'. The token is missing, unknown, "
                "expired, revoked or suspended.",
            )
        if token.scope not in self.scopes:
            purposes = " or ".join(scope.label for scope in self.scopes)
            raise Problem(403, "scope", f"The scope of this token does not permit to {purposes}.")
        return token


class UserToken(ScopedToken):
    """A valid token of a user, with a limit of requests per minute.

    Addresses that the site trusts may read without a token, as one account.
    """

    def authenticate(self, request: HttpRequest, key: str | None) -> Token:
        """Return the token; refuse a request without a valid token, or above the rate limit."""
        token = None
        if key is None and Token.Scope.READ in self.scopes:
            token = _of_address(request)
        token = token or super().authenticate(request, key)
        # A user's tokens share the limit, as more of them are free.
        rate = _RATES.count(f"user {token.user_id}" if token.pk else client_address(request))
        request.rate = rate  # type: ignore[attr-defined]  # for the headers of the response
        if rate.retry_after_s:
            raise Problem(
                429,
                "rate",
                f"At most {rate.limit:,} requests per minute. Send many ids at once.",
                retry_after_s=max(1, round(rate.retry_after_s)),
            )
        return token


class WriterToken(UserToken):
    """A valid token of a user to store content, which the database's disk must have space for."""

    def authenticate(self, request: HttpRequest, key: str | None) -> Token:
        """Return the token; refuse all content while the disk is nearly full."""
        token = super().authenticate(request, key)
        require_space()
        return token


READER = UserToken(Token.Scope.READ, Token.Scope.WRITE)
WRITER = WriterToken(Token.Scope.WRITE)


def reader(request: HttpRequest) -> User:
    """Return the user whose rights a request has."""
    user: User = request.auth.user  # type: ignore[attr-defined]  # ninja sets it
    return user


def _of_secret(key: str) -> Token | None:
    kind, _, secret = key.partition(" ")
    if kind.lower() not in _KINDS:
        return None
    return Token.for_secret(secret.strip(), datetime.now(UTC))


def _of_address(request: HttpRequest) -> Token | None:
    """Return an unsaved token for an address that needs none."""
    address = client_address(request)
    if not address or not any(ip_address(address) in part for part in settings.API_NETWORKS):
        return None
    account = User.objects.filter(username=settings.API_NETWORKS_USER, is_active=True).first()
    return Token(scope=Token.Scope.READ, user=account) if account else None


def _count_failure(request: HttpRequest) -> None:
    """Log an invalid token and limit the attempts of its address.

    Only invalid tokens count: one agent with such a token must not stop the others on its host.
    """
    address = client_address(request)
    attempt = {"address": address, "path": request.path}
    try:
        count_attempt(_INVALID_TOKENS.counter_for(network(address)))
    except TooManyAttempts as refusal:
        log.warning("token_throttled", **attempt, retry_after_s=refusal.retry_after_s)
        raise Problem(
            429,
            "attempts",
            "Too many requests without a valid token from this address.",
            retry_after_s=refusal.retry_after_s,
        ) from refusal
    log.warning("token_refused", **attempt)
