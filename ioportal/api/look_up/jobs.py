"""``GET /api/v1/jobs/query/``: look-up of many jobs by their ids (docs/api.md)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Schema
from pydantic import Field
from pydantic_core import to_json

from ioportal.api.authentication import READER, reader
from ioportal.api.look_up import found, query
from ioportal.api.look_up.fields import BY_ID, EXAMPLE, LIST
from ioportal.api.problems import Problem, expect_length, invalid, problems
from ioportal.core.visible_text import storable

if TYPE_CHECKING:
    from django.contrib.auth.models import User


_MOST_BYTES = 1 << 20
_FORM, _JSON = "application/x-www-form-urlencoded", "application/json"
_FOUND = {
    "description": "Records by id, or with form=list a list of records",
    "headers": {
        "X-Truncated": {
            "description": "limit=N if there are more than N records",
            "schema": {"type": "string"},
        }
    },
    "content": {_JSON: {"schema": {"anyOf": [LIST, BY_ID]}, "example": {"4012345678": EXAMPLE}}},
}
_WHOLE_NUMBER: dict[str, Any] = {"pattern": "^([1-9][0-9]{0,5})?$"}
_VALUE = {"type": ["string", "integer"]}
_VALUES = {"anyOf": [_VALUE, {"type": "array", "items": _VALUE}]}

router = Router(tags=["Look-up"])


class Parameters(Schema):
    """Lists are separated by commas or bars; `*` in a text stands for any characters."""

    pandaid: str = Field("", description="PanDA ids", examples=["4012345678,4012345679"])
    batchid: str = Field("", description="Batch ids; alone, they look up batch jobs")
    jeditaskid: str = Field("", description="PanDA tasks", examples=["10995522|10995523"])
    computingsite: str = Field("", description="PanDA queues", examples=["ORNL_Titan_MCORE"])
    produsername: str = Field("", description="Users of PanDA, separated by bars")
    jobstatus: str = Field("", description="States in PanDA", examples=["finished,failed"])
    hours: str = Field(
        "", description="Modified in the last hours", json_schema_extra=_WHOLE_NUMBER
    )
    days: str = Field("", description="Modified in the last days", json_schema_extra=_WHOLE_NUMBER)
    date_from: str = Field("", description="Modified at or after this time (UTC)")
    date_to: str = Field("", description="Modified before this time (UTC)")
    fields: str = Field("", description="Names of fields of the records; without it all")
    limit: str = Field(
        "",
        description=f"At most so many records, up to {query.MOST_RECORDS:,}",
        json_schema_extra=_WHOLE_NUMBER,
    )
    form: str = Field(
        "",
        description="dict: records by id; list: records with counts; without it dict",
        json_schema_extra={"enum": ["", *query.FORMS]},
    )
    json_: str = Field("", alias="json", description="Accepted and ignored: answers are JSON")
    timestamp: str = Field("", description="Accepted and ignored")


@router.get(
    "/query/",
    auth=READER,
    summary="Look up jobs",
    response=problems(),
    openapi_extra={"responses": {200: _FOUND}},
)
def look_up(request: HttpRequest, parameters: Query[Parameters]) -> HttpResponse:  # noqa: ARG001  (declares them)
    """Return the I/O of up to 2,000 PanDA jobs or batch jobs."""
    return _respond(reader(request), request.GET.dict(), query.MOST_IDS_IN_URL)


@router.post(
    "/query/",
    auth=READER,
    summary="Look up more jobs",
    response=problems(411, 413, 415),
    openapi_extra={
        "requestBody": {
            "content": {
                kind: {
                    "schema": {
                        "type": "object",
                        "properties": {
                            field.alias or name: schema | {"description": field.description}
                            for name, field in Parameters.model_fields.items()
                        },
                        "additionalProperties": False,
                    },
                    "example": {"pandaid": "4012345678,4012345679", "fields": "pandaid,open_total"},
                }
                for kind, schema in ((_FORM, _VALUE), (_JSON, _VALUES))
            }
        },
        "responses": {200: _FOUND},
    },
)
def look_up_many(request: HttpRequest) -> HttpResponse:
    """Return the I/O of up to 20,000 PanDA jobs or batch jobs."""
    return _respond(reader(request), _body(request), query.MOST_IDS)


def _body(request: HttpRequest) -> dict[str, str]:
    """Return the parameters of a body, a form or a JSON object with texts, numbers and lists."""
    expect_length(request, _MOST_BYTES)
    if request.content_type == _FORM:
        return request.POST.dict()
    if request.content_type != _JSON:
        raise Problem(415, "content_type", f"Send {_JSON} or {_FORM}.")
    try:
        values = json.loads(request.body)
    except (ValueError, RecursionError) as error:
        raise Problem(400, "body", f"The body is not valid JSON: {error}.") from error
    if not isinstance(values, dict):
        raise Problem(400, "body", "The body is not a JSON object.")
    return {name: "|".join(_texts(name, value)) for name, value in values.items()}


def _texts(name: str, value: Any) -> list[str]:
    """Return a value of a JSON body, or the values of a list, as texts."""
    parts = value if isinstance(value, list) else [value]
    if not all(type(part) in {str, int} for part in parts):
        raise invalid(name, "Send a text, a whole number or a list of them.")
    return list(map(str, parts))


def _respond(user: User, parameters: dict[str, str], most_ids: int) -> HttpResponse:
    now = datetime.now(UTC)
    asked = query.parsed({name: storable(v) for name, v in parameters.items()}, most_ids, now)
    result = found.find(user, asked)
    if asked.form == "dict":
        missing = result.unknown.get("batchid" if asked.is_of_batch_jobs else "pandaid", ())
        body: dict[str, Any] = dict.fromkeys(missing) | result.records
    else:
        body = {
            "jobs": list(result.records.values()),
            "nrecords": len(result.records),
            "timestamp": f"{now:%Y-%m-%dT%H:%M:%S}",
            "unknown": result.unknown,
            "warnings": result.warnings,
            "errors": [],
        }
    response = HttpResponse(to_json(body, inf_nan_mode="null"), content_type=_JSON)
    if result.is_truncated:
        response["X-Truncated"] = f"limit={asked.limit}"
    return response
