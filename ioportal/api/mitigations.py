"""``PUT /api/v1/mitigations/KEY/``: the log of mitigations (docs/api.md)."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003  (pydantic reads it)
from typing import TYPE_CHECKING, Literal

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.urls import reverse
from ninja import Router, Schema
from pydantic import ConfigDict, Field, field_validator

from ioportal.api.authentication import WRITER, reader
from ioportal.api.problems import Problem, problems
from ioportal.changes import mitigations
from ioportal.changes.models import Mitigation
from ioportal.core.time_fields import EARLIEST, LATEST
from ioportal.core.visible_text import storable
from ioportal.ingest.manifest import Moment  # noqa: TC001  (pydantic reads it)
from ioportal.jobs.populations import scopes
from ioportal.metrics import ANY_BY_NAME

if TYPE_CHECKING:
    from django.http import HttpRequest

router = Router(tags=["Mitigations"])


class MitigationBody(Schema):
    """A change at the site; times have a zone."""

    model_config = ConfigDict(extra="forbid")

    title: str = Field(min_length=1, max_length=120, examples=["Search path without Lustre"])
    kind: Literal[tuple(Mitigation.Kind.values)]  # type: ignore[valid-type]
    started_at: Moment
    completed_at: Moment | None = None
    reverted_at: Moment | None = None
    made_by: str = ""
    scope: str = Field("", description="Filters of a job list; without it all jobs")
    metric: str = Field("", description="Metric that is expected to change (docs/metrics.md)")
    factor: float | None = Field(
        None, gt=0, le=1e9, allow_inf_nan=False, description="Expected: value after / value before"
    )
    direction: Literal["", "less", "more"] = Field("", description="Expected, without a factor")
    links: list[str] = []
    notes: str = Field("", max_length=mitigations.MAX_NOTES)
    cost: str = ""
    fix: Literal[("", *Mitigation.Fix.values)] = ""  # type: ignore[valid-type]
    fix_url: str = ""
    is_public: bool = False

    @field_validator("title")
    @classmethod
    def _has_text(cls, title: str) -> str:
        if not title.strip():
            raise ValueError("The title is empty.")
        return title.strip()

    @field_validator("started_at", "completed_at", "reverted_at")
    @classmethod
    def _is_of_our_time(cls, moment: datetime | None) -> datetime | None:
        if moment and not EARLIEST <= moment < LATEST:
            raise ValueError("The time is not between 1970 and 2200.")
        return moment

    @field_validator("metric")
    @classmethod
    def _is_metric(cls, name: str) -> str:
        if name and name not in ANY_BY_NAME:
            raise ValueError("This is not a metric.")
        return name

    @field_validator("*")
    @classmethod
    def _is_storable(cls, value: object) -> object:
        if "\0" in (value if isinstance(value, str | list) else ""):
            raise ValueError("Null characters are not allowed.")
        return value


class StoredMitigation(Schema):
    """The mitigation is stored."""

    url: str = Field(examples=["https://io.example.org/mitigations/3/"])
    created: bool
    changed: list[str] = Field(description="Names of the fields that have other values")


@router.put(
    "/{key}/",
    auth=WRITER,
    summary="Log or change a mitigation",
    response={200: StoredMitigation, **problems(409, 422)},
)
def store(request: HttpRequest, key: str, body: MitigationBody) -> dict[str, object]:
    """Store a mitigation under a key of the sender; the same body again changes nothing."""
    try:
        return _store(reader(request).get_username(), storable(key), body)
    except IntegrityError as error:  # another request stored the key at the same time
        message = "Another request stores this mitigation. Try again."
        raise Problem(409, "conflict", message, retry_after_s=1) from error


@transaction.atomic
def _store(by: str, key: str, body: MitigationBody) -> dict[str, object]:
    values = body.model_dump()
    known = Mitigation.objects.select_for_update().filter(key=key).first()
    mitigation = known or Mitigation(key=key)
    try:
        values["scope"] = scopes.checked_scope(body.scope)
        mitigations.checked_links(body.fix_url)
        values["links"] = mitigations.checked_links("\n".join(body.links))
        changed = [name for name, value in values.items() if getattr(mitigation, name) != value]
        for name, value in values.items():
            setattr(mitigation, name, value)
        mitigation.full_clean()
    except ValidationError as error:
        raise Problem(422, "mitigation", " ".join(error.messages)) from error
    if known:
        mitigations.change(mitigation, by, [name.replace("_", " ") for name in changed])
    else:
        mitigations.log(mitigation, by)
    url = f"{settings.PORTAL_URL}{reverse('mitigation', args=[mitigation.pk])}"
    return {"url": url, "created": known is None, "changed": changed if known else []}
