"""``Authorization: Token <secret>``: who calls."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ninja.security import APIKeyHeader

from ioportal.api.models import Token
from ioportal.api.problems import Problem

if TYPE_CHECKING:
    from django.http import HttpRequest


class TokenOf(APIKeyHeader):
    """A token with a scope."""

    param_name = "Authorization"

    def __init__(self, scope: Token.Scope) -> None:
        super().__init__()
        self._scope = scope

    def authenticate(self, request: HttpRequest, key: str | None) -> Token:  # noqa: ARG002
        """Return the token; refuse a request without a valid one."""
        kind, _, secret = (key or "").partition(" ")
        token = (
            Token.objects.all().of_secret(secret.strip(), datetime.now(UTC))
            if kind.lower() == "token"
            else None
        )
        if token is None:
            raise Problem(
                401,
                "token",
                "Send a valid token: 'Authorization: Token ...'. This one is unknown, expired or "
                "revoked, or there is none.",
            )
        if token.scope != self._scope:
            raise Problem(403, "scope", f"This token is not one to {self._scope.label}.")
        return token
