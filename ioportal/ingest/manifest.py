"""The manifest of a batch, part `batch` of a delivery (docs/api.md), and refusals of batches.

Unknown keys are ignored: an agent may be newer than the portal.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Annotated, Any, Self
from uuid import UUID  # noqa: TC003  (pydantic reads the types)

from pydantic import AfterValidator, AwareDatetime, BaseModel, Field, model_validator

from collectors.parsed import REJECT_TEXT_CHARACTERS
from ioportal.telemetry.models import LARGEST_BIGINT


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("is outside the calendar") from error


def _storable(text: str) -> str:
    return text.replace("\x00", "\ufffd")


Moment = Annotated[AwareDatetime, AfterValidator(_in_utc)]
_Count = Annotated[int, Field(ge=0, le=LARGEST_BIGINT)]
_Text = Annotated[str, Field(max_length=REJECT_TEXT_CHARACTERS), AfterValidator(_storable)]
# Keys that may differ between two deliveries of one batch.
_DELIVERY_KEYS = {"sent_at", "spool", "agent"}


class Account(BaseModel):
    """The lines of the input of a batch, by result."""

    lines: _Count
    accepted: _Count
    rejected: _Count
    irrelevant: _Count

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        if self.lines != self.accepted + self.rejected + self.irrelevant:
            raise ValueError("lines must equal accepted + rejected + irrelevant")
        return self


class Observed(BaseModel):
    """An interval in which a target ("": the source as a whole) was observed."""

    target: Annotated[str, Field(max_length=64)] = ""
    start: Moment
    end: Moment

    @model_validator(mode="after")
    def _has_a_length(self) -> Self:
        if self.end < self.start:
            raise ValueError("end is before start")
        return self


class Reject(BaseModel):
    """A data line that cannot be parsed."""

    line: _Count
    text: _Text
    reason: _Text


class Spool(BaseModel):
    """The undelivered batches of the agent."""

    batches: _Count = 0
    bytes: _Count = 0
    oldest_at: Moment | None = None
    refused: _Count | None = None  # batches; None: unknown


class Agent(BaseModel):
    """Version, host and instance of the agent."""

    version: Annotated[str, Field(max_length=64), AfterValidator(_storable)] = ""
    host: Annotated[str, Field(max_length=255), AfterValidator(_storable)] = ""
    instance: UUID | None = None  # created with its state folder


class Manifest(BaseModel):
    """A batch without its rows."""

    stream: UUID
    sequence: Annotated[int, Field(ge=1, le=LARGEST_BIGINT)]
    table: Annotated[str, Field(max_length=64)]
    account: Account
    coverage: Annotated[list[Observed], Field(max_length=10_000)] = []
    rejects: Annotated[list[Reject], Field(max_length=1_000)] = []
    rejected_by_reason: Annotated[dict[_Text, _Count], Field(max_length=200)] = {}
    sent_at: Moment | None = None
    spool: Spool | None = None
    agent: Agent = Agent()

    @model_validator(mode="after")
    def _rejects_add_up(self) -> Self:
        by_reason = sum(self.rejected_by_reason.values())
        if max(by_reason, len(self.rejects)) > self.account.rejected:
            raise ValueError("rejects exceed the rejected lines of the account")
        return self

    @property
    def key(self) -> str:
        """The idempotency key."""
        return f"{self.stream}/{self.sequence}"

    def content(self, rows_digest: str) -> str:
        """Return the digest of the content, which must be equal in every delivery."""
        manifest = self.model_dump_json(exclude=_DELIVERY_KEYS)
        return hashlib.sha256(f"{manifest}\n{rows_digest}".encode()).hexdigest()


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
