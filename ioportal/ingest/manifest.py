"""What a batch says of its rows: part `batch` of a delivery (docs/api.md).

Keys that are not known are ignored: an agent may be newer than the portal.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Annotated, Self
from uuid import UUID  # noqa: TC003  (pydantic reads the types)

from pydantic import AfterValidator, AwareDatetime, BaseModel, Field, model_validator

from collectors.parsed import REJECT_TEXT_CHARACTERS
from ioportal.telemetry.models import LARGEST_BIGINT


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("lies outside of the calendar") from error


def _storable(text: str) -> str:
    return text.replace("\x00", "\ufffd")


_Moment = Annotated[AwareDatetime, AfterValidator(_in_utc)]
_Count = Annotated[int, Field(ge=0, le=LARGEST_BIGINT)]
_Text = Annotated[str, Field(max_length=REJECT_TEXT_CHARACTERS), AfterValidator(_storable)]
# What differs between two deliveries of one batch.
_OF_THE_DELIVERY = {"sent_at", "spool", "agent"}


class Account(BaseModel):
    """Where every line went that the batch was read from."""

    lines: _Count
    accepted: _Count
    rejected: _Count
    irrelevant: _Count

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        if self.lines != self.accepted + self.rejected + self.irrelevant:
            raise ValueError("lines are not accepted + rejected + irrelevant")
        return self


class Observed(BaseModel):
    """An interval in which a target ("": the source as a whole) was observed."""

    target: Annotated[str, Field(max_length=64)] = ""
    start: _Moment
    end: _Moment

    @model_validator(mode="after")
    def _has_a_length(self) -> Self:
        if self.end < self.start:
            raise ValueError("end is before start")
        return self


class Reject(BaseModel):
    """A line that claims to be data and is not readable."""

    line: _Count
    text: _Text
    reason: _Text


class Spool(BaseModel):
    """What the agent has not delivered yet."""

    batches: _Count = 0
    bytes: _Count = 0
    oldest_at: _Moment | None = None


class Agent(BaseModel):
    """Who delivers."""

    version: Annotated[str, Field(max_length=64), AfterValidator(_storable)] = ""
    host: Annotated[str, Field(max_length=255), AfterValidator(_storable)] = ""


class Manifest(BaseModel):
    """A batch, but for its rows."""

    stream: UUID
    sequence: Annotated[int, Field(ge=1, le=LARGEST_BIGINT)]
    table: Annotated[str, Field(max_length=64)]
    account: Account
    coverage: Annotated[list[Observed], Field(max_length=10_000)] = []
    rejects: Annotated[list[Reject], Field(max_length=1_000)] = []
    rejected_by_reason: Annotated[dict[_Text, _Count], Field(max_length=200)] = {}
    sent_at: _Moment | None = None
    spool: Spool | None = None
    agent: Agent = Agent()

    @model_validator(mode="after")
    def _rejects_add_up(self) -> Self:
        named = sum(self.rejected_by_reason.values())
        if max(named, len(self.rejects)) > self.account.rejected:
            raise ValueError("more lines are rejected by reason than in the account")
        return self

    @property
    def key(self) -> str:
        """The idempotency key."""
        return f"{self.stream}/{self.sequence}"

    def content(self, rows_digest: str) -> str:
        """Return the digest of what must be the same in every delivery."""
        said = self.model_dump_json(exclude=_OF_THE_DELIVERY)
        return hashlib.sha256(f"{said}\n{rows_digest}".encode()).hexdigest()
