"""Declarations of responses whose bodies are no schema of ninja."""

from __future__ import annotations

from typing import Any


def answer(
    description: str,
    example: Any,
    *other_kinds: str,
    kind: str = "application/json",
    schema: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return `openapi_extra` of the response 200, in one kind with an example, or in others."""
    own = {"schema": schema or {}, "example": example}
    content = {kind: own} | {other: {"schema": {}} for other in other_kinds}
    return {"responses": {200: {"description": description, "content": content}}}
