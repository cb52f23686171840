"""Bodies of error responses for programs (RFC 9457), with a code that does not change."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any
from uuid import uuid4

CONTENT_TYPE = "application/problem+json"
_REQUEST_ID = re.compile(r"[\w.\-]{1,64}", re.ASCII)


def problem_details(status: int, code: str, detail: str, **members: Any) -> dict[str, Any]:
    """Return the members of a problem: `code` is for programs, `detail` a sentence for people."""
    title = HTTPStatus(status).phrase
    return {"title": title, "status": status, "code": code, "detail": detail, **members}


def request_id(sent: str) -> str:
    """Return the id of a request: the one that was sent, if it is valid, or a new one."""
    return sent if _REQUEST_ID.fullmatch(sent) else uuid4().hex
