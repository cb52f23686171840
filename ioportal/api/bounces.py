"""``POST /api/v1/bounces``: bounced mails from a mail server (docs/api.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.exceptions import RequestDataTooBig
from django.http import UnreadablePostError
from ninja import Router, Schema

from ioportal.alerts import bounces
from ioportal.api.models import Token
from ioportal.api.problems import Problem, problems
from ioportal.api.tokens import ScopedToken

if TYPE_CHECKING:
    from django.http import HttpRequest

_BODY = {
    "requestBody": {
        "required": True,
        "content": {"message/rfc822": {"schema": {"type": "string", "format": "binary"}}},
    }
}

router = Router()


class Stored(Schema):
    """The message is processed."""

    matched: bool


@router.post(
    "",
    auth=ScopedToken(Token.Scope.BOUNCES),
    response={200: Stored, **problems(401, 403, 413, 422, 429, 503)},
    openapi_extra=_BODY,
)
def receive(request: HttpRequest) -> dict[str, bool]:
    """Apply a message; respond after the commit."""
    try:
        content = request.body
    except RequestDataTooBig as error:
        raise Problem(413, "too_large", "The message is too large.") from error
    except UnreadablePostError as error:
        raise Problem(422, "body", f"The body cannot be read: {error}") from error
    return {"matched": bounces.store(content)}
