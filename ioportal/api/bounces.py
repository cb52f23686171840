"""``POST /api/v1/bounces``: bounced mails from a mail server (docs/api.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core.exceptions import RequestDataTooBig
from django.http import UnreadablePostError
from ninja import Router, Schema
from pydantic import Field

from ioportal.alerts.delivery import bounces
from ioportal.api.authentication import ScopedToken
from ioportal.api.models import Token
from ioportal.api.problems import Problem, problems

if TYPE_CHECKING:
    from django.http import HttpRequest

_BODY = {
    "requestBody": {
        "required": True,
        "description": "A raw message of up to 2.5 MB",
        "content": {
            "message/rfc822": {
                "schema": {"type": "string", "format": "binary", "minLength": 1},
                "example": "From: <>\r\nTo: ioportal@example.org\r\n"
                "Content-Type: multipart/report; report-type=delivery-status; boundary=b\r\n",
            }
        },
    },
    "responses": {200: {"content": {"application/json": {"example": {"matched": True}}}}},
}

router = Router(tags=["Bounces"])


class Processed(Schema):
    """The message is processed."""

    matched: bool = Field(description="Whether it is a bounce of a mail of the portal")


@router.post(
    "",
    auth=ScopedToken(Token.Scope.BOUNCES),
    summary="Report a bounce",
    response={200: Processed, **problems(413, 422)},
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
    if not content:
        raise Problem(422, "body", "The body is empty. Send the raw message.")
    return {"matched": bounces.store(content)}
