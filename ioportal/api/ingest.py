"""``POST /api/v1/ingest/batches``: deliveries of agents (docs/api.md)."""

from __future__ import annotations

from datetime import UTC, datetime
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.core.files.uploadedfile import TemporaryUploadedFile
from django.core.files.uploadhandler import TemporaryFileUploadHandler
from django.http import UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from ninja import Router, Schema, Status
from pydantic import Field, ValidationError

from ioportal.api.authentication import ScopedToken
from ioportal.api.models import Token
from ioportal.api.problems import Problem, expect_length, problems
from ioportal.celery import wake
from ioportal.core.stages import ATTRIBUTE_PENDING
from ioportal.ingest import backpressure, batches, senders
from ioportal.ingest.manifest import (
    Ahead,
    Conflict,
    Fenced,
    Manifest,
    Refusal,
    TooLarge,
    UnknownType,
)

if TYPE_CHECKING:
    from django.http import HttpRequest

    from ioportal.site.models import Source

BODY_BYTES = 32 << 20
_MANIFEST_BYTES = 2 << 20
_LONGEST_WAIT_S = 3_600
_STATUS: dict[type[Refusal], int] = {
    Conflict: 409,
    TooLarge: 413,
    UnknownType: 415,
    Fenced: 423,
    Ahead: 425,
}
_STREAM = "0f8fad5b-d9cb-469f-a165-70867728950e"
_BODY = {
    "parameters": [
        {
            "in": "header",
            "name": "Idempotency-Key",
            "required": True,
            "description": "stream/sequence of the batch",
            "schema": {"type": "string"},
            "example": f"{_STREAM}/1",
        }
    ],
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["batch", "rows"],
                    "properties": {
                        "batch": Manifest.model_json_schema(),
                        "rows": {
                            "type": "string",
                            "format": "binary",
                            "description": "A file: an Arrow stream or NDJSON (docs/api.md)",
                        },
                        "seconds": {
                            "type": "string",
                            "format": "binary",
                            "description": "A file like rows: rpc_seconds, with rpc_windows only",
                        },
                    },
                },
                "encoding": {"batch": {"contentType": "application/json"}},
                "example": {
                    "batch": {
                        "stream": _STREAM,
                        "sequence": 1,
                        "table": "rpc_windows",
                        "account": {"lines": 9, "accepted": 7, "rejected": 0, "irrelevant": 2},
                    },
                    "rows": "",
                },
            }
        },
    },
    "responses": {202: {"content": {"application/json": {"example": {"already": False}}}}},
}

router = Router(tags=["Batches"])


class Stored(Schema):
    """The batch is stored durably."""

    already: bool = Field(description="Whether an earlier delivery stored it")


@router.post(
    "/batches",
    auth=ScopedToken(Token.Scope.INGEST),
    summary="Deliver a batch",
    response={202: Stored, **problems(409, 411, 413, 415, 422, 423, 425)},
    openapi_extra=_BODY,
)
def deliver(request: HttpRequest) -> Status[dict[str, bool]]:
    """Store a batch of the token's source; respond after the commit."""
    if overload := backpressure.overload():
        raise overload
    token: Token = request.auth  # type: ignore[attr-defined]  # ninja sets it
    source, now = token.source, datetime.now(UTC)
    assert source  # noqa: S101  (a constraint of the database)
    manifest: Manifest | None = None
    try:
        manifest, parts = _parts(request)
        already = _received(request, source, manifest, parts, now)
    except Problem as problem:
        is_fenced = problem.status == _STATUS[Fenced]  # the health page names both agents
        senders.refused(source, "" if is_fenced else problem.body["detail"], manifest, now)
        raise
    wake(ATTRIBUTE_PENDING)
    return Status(202, {"already": already})


def _received(
    request: HttpRequest,
    source: Source,
    manifest: Manifest,
    parts: dict[str, batches.Rows],
    now: datetime,
) -> bool:
    """Store the batch; return whether it was stored already."""
    if request.headers.get("Idempotency-Key") != manifest.key:
        raise Problem(
            422,
            "idempotency_key",
            f"The header Idempotency-Key must be {manifest.key}, as in the part 'batch'.",
        )
    try:
        return batches.receive(source, manifest, parts["rows"], now, seconds=parts.get("seconds"))
    except Refusal as refusal:
        raise Problem(
            _STATUS.get(type(refusal), 422),
            refusal.code,
            refusal.message,
            retry_after_s=_retry_after_s(refusal),
            **refusal.details,
        ) from refusal


def _retry_after_s(refusal: Refusal) -> int | None:
    if isinstance(refusal, Ahead):
        return min(ceil(refusal.wait_s), _LONGEST_WAIT_S)
    return senders.RETRY_S if isinstance(refusal, Fenced) else None


def _parts(request: HttpRequest) -> tuple[Manifest, dict[str, batches.Rows]]:
    """Read the parts of the body; files are written to disk."""
    _expect_bounded_body(request)
    request.upload_handlers = [TemporaryFileUploadHandler(request)]
    try:
        manifest_bytes = _manifest_bytes(request)
        files = {name: request.FILES.get(name) for name in ("rows", "seconds")}
    except RequestDataTooBig as error:
        raise Problem(413, "too_large", "The part 'batch' is too large.") from error
    except (MultiPartParserError, SuspiciousOperation, UnreadablePostError) as error:
        raise Problem(422, "body", f"The body cannot be read: {error}") from error
    parts = {
        name: batches.Rows(Path(file.temporary_file_path()), file.content_type or "")
        for name, file in files.items()
        if isinstance(file, TemporaryUploadedFile)
    }
    if manifest_bytes is None or "rows" not in parts:
        raise Problem(
            422, "parts", "Send a part 'batch' (JSON) and a part 'rows' with a file name."
        )
    try:
        manifest = Manifest.model_validate_json(manifest_bytes)
    except ValidationError as error:
        raise _invalid(error) from error
    return manifest, parts


def _expect_bounded_body(request: HttpRequest) -> None:
    if request.content_type != "multipart/form-data":
        raise Problem(415, "content_type", "Send multipart/form-data.")
    expect_length(request, BODY_BYTES, remedy="Send the rows as several batches.")


def _manifest_bytes(request: HttpRequest) -> str | bytes | None:
    """Return the part `batch`, a field or a file."""
    file: Any = request.FILES.get("batch")
    if file is None:
        return request.POST.get("batch")
    if file.size > _MANIFEST_BYTES:
        raise Problem(413, "too_large", "The part 'batch' is too large.")
    content: bytes = file.read()
    return content


def _invalid(error: ValidationError) -> Problem:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"]))
    return Problem(
        422, "batch", f"The part 'batch' is invalid: {place}: {first['msg']}",
        column=place, reason=first["msg"],
    )  # fmt: skip
