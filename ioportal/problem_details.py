"""Bodies of error responses for programs (RFC 9457), with a code that does not change."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

CONTENT_TYPE = "application/problem+json"


def problem_details(status: int, code: str, detail: str, **members: Any) -> dict[str, Any]:
    """Return the members of a problem: `code` is for programs, `detail` a sentence for people."""
    title = HTTPStatus(status).phrase
    return {"title": title, "status": status, "code": code, "detail": detail, **members}
