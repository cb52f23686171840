"""Why a batch is not taken, as a program can read it."""

from __future__ import annotations

from typing import Any


class Refusal(Exception):  # noqa: N818  (a decision about the input, not a fault)
    """A batch that cannot be stored, however often it is sent.

    Args:
        message: what is wrong, for people.
        code: likewise, for programs.
        details: what it is about: `column`, `row` (from 1), `reason`, `remedy` and the like.
    """

    code = "values"

    def __init__(self, message: str, *, code: str = "", **details: object) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.code
        self.details: dict[str, Any] = details


class Conflict(Refusal):
    """Its key was delivered before, with other content."""

    code = "conflict"


class TooLarge(Refusal):
    """It has more than is taken at once."""

    code = "too_large"


class UnknownType(Refusal):
    """Its rows are in no format that is known."""

    code = "content_type"
