"""Authentication of requests by ``Authorization: Token <secret>``."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import structlog
from ninja.security import APIKeyHeader

from ioportal.api.models import Token
from ioportal.api.problems import Problem
from ioportal.throttling.addresses import client_address, network
from ioportal.throttling.counters import Limit, TooManyAttempts, count_attempt

if TYPE_CHECKING:
    from django.http import HttpRequest

_INVALID_TOKENS = Limit("invalid tokens", 60, timedelta(seconds=5))  # per address

log = structlog.get_logger()


class ScopedToken(APIKeyHeader):
    """A valid token with a given scope."""

    param_name = "Authorization"

    def __init__(self, scope: Token.Scope) -> None:
        super().__init__()
        self._scope = scope

    def authenticate(self, request: HttpRequest, key: str | None) -> Token:
        """Return the token; refuse a request without a valid one."""
        kind, _, secret = (key or "").partition(" ")
        token = (
            Token.objects.all().for_secret(secret.strip(), datetime.now(UTC))
            if kind.lower() == "token"
            else None
        )
        if token is None:
            _count_failure(request)
            raise Problem(
                401,
                "token",
                "Send a valid token: 'Authorization: Token ...'. The token is missing, unknown, "
                "expired or revoked.",
            )
        if token.scope != self._scope:
            raise Problem(
                403, "scope", f"The scope of this token does not permit to {self._scope.label}."
            )
        return token


def _count_failure(request: HttpRequest) -> None:
    """Log an invalid token and limit the attempts of its address.

    Valid tokens are not kind: 256 random bits cannot be guessed, and one agent with an invalid
    token must not stop the other agents on its host.
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
