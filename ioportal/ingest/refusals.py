"""Refusals of batches, with codes for programs."""

from __future__ import annotations

from typing import Any


class Refusal(Exception):  # noqa: N818  (a decision about the input, not a fault)
    """A batch that cannot be stored as it is.

    With the detail `retry`, it can be once its cause is fixed.

    Args:
        message: the error, for people.
        code: the error, for programs.
        details: `column`, `row` (from 1), `reason`, `remedy` and similar values.
    """

    code = "values"

    def __init__(self, message: str, *, code: str = "", **details: object) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.code
        self.details: dict[str, Any] = details


class Conflict(Refusal):
    """The key was delivered before with different content."""

    code = "conflict"


class Ahead(Refusal):
    """Times of the batch are ahead of the portal's clock: the sender waits.

    Args:
        message: the error, for people.
        wait_s: until the times are past.
        details: as of a refusal.
    """

    code = "ahead"

    def __init__(self, message: str, *, wait_s: float, **details: Any) -> None:
        super().__init__(message, **details)
        self.wait_s = wait_s


class Fenced(Refusal):
    """Another agent sends the batches of this source."""

    code = "fenced"


class TooLarge(Refusal):
    """The batch exceeds a limit of size."""

    code = "too_large"


class UnknownType(Refusal):
    """The content type of the rows is not supported."""

    code = "content_type"
