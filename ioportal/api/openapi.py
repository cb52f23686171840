"""The OpenAPI description of the API, with credentials, headers and errors of all operations."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema

from ioportal.api.authentication import ScopedToken, UserToken
from ioportal.api.problems import ProblemResponse
from ioportal.core.problem_details import CONTENT_TYPE, problem_details

if TYPE_CHECKING:
    from ninja.operation import Operation

_FIRST_ERROR = 400
_CODES = {
    400: ("parameter", "The parameter 'limit' is invalid."),
    401: ("token", "Send a valid token: 'Authorization: Token ...'."),
    403: ("scope", "The scope of this token does not permit to do this."),
    404: ("missing", "There is no such resource."),
    406: ("accept", "No type in the header Accept is available."),
    409: ("conflict", "The request conflicts with stored data."),
    423: ("fenced", "Another agent sends the batches of this source."),
    425: ("ahead", "Times of the batch are ahead of the portal's clock."),
    411: ("length", "Send the header Content-Length."),
    413: ("too_large", "The body is too large."),
    415: ("content_type", "Send another type of content."),
    422: ("body", "The body is invalid."),
    429: ("rate", "At most 6,000 requests per minute."),
    500: ("fault", "This is a fault of the portal. It was logged."),
    503: ("database", "The database is not available. Nothing was stored. Try again."),
}
_HEADERS = {
    "X-Request-ID": "The id of the request, as sent or a new one. Quote it in questions.",
    "ETag": "Send it as If-None-Match: an unchanged answer has the status 304 and no body.",
    "RateLimit-Limit": "Requests per minute of this token",
    "RateLimit-Remaining": "Requests that are allowed now",
    "RateLimit-Reset": "Seconds until all of them are allowed again",
    "Retry-After": "Seconds to wait before the next request",
    "WWW-Authenticate": "Token",
}
_RATE = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
_SECURITY_SCHEMES = {
    "Token": {
        "type": "apiKey",
        "in": "header",
        "name": "Authorization",
        "description": "Authorization: Token SECRET. The roles of an operation are the scopes of "
        "tokens that permit it.",
    },
    "Bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "Authorization: Bearer SECRET, with the same tokens.",
    },
}


class Api(NinjaAPI):
    """An API whose description has errors, headers and credentials of all operations."""

    def get_openapi_schema(
        self, *, path_prefix: str | None = None, path_params: dict[str, Any] | None = None
    ) -> OpenAPISchema:
        """Return the description."""
        return _Description(self, path_prefix or self.get_root_path(path_params or {}))


class _Description(OpenAPISchema):
    def add_schema_definitions(self, definitions: dict[str, Any]) -> None:
        """Add schemas; ninja lets a second one of the same name replace the first."""
        for name, schema in definitions.items():
            if self.schemas.setdefault(name, schema) != schema:
                raise ValueError(f"Two schemas of the API have the name {name}.")

    def get_components(self) -> dict[str, Any]:
        self.add_schema_definitions({"Problem": ProblemResponse.model_json_schema()})
        return {
            "schemas": self.schemas,
            "securitySchemes": _SECURITY_SCHEMES,
            "headers": {
                name: {"description": text, "schema": {"type": "string"}}
                for name, text in _HEADERS.items()
            },
        }

    def operation_details(self, operation: Operation) -> dict[str, Any]:
        details: dict[str, Any] = super().operation_details(operation)
        if "GET" in operation.methods:
            unchanged = {304: {"description": "Unchanged since the ETag that was sent"}}
            details["responses"] = dict(sorted((details["responses"] | unchanged).items()))
        limited = any(isinstance(auth, UserToken) for auth in operation.auth_callbacks)
        for status, response in details["responses"].items():
            headers = ["X-Request-ID", *(_RATE if limited and status != 401 else ())]  # noqa: PLR2004
            if status == HTTPStatus.OK and "GET" in operation.methods:
                headers.append("ETag")
            response["headers"] = response.get("headers", {}) | {
                name: {"$ref": f"#/components/headers/{name}"}
                for name in (*headers, *_headers_of(status))
            }
        return details

    def operation_security(self, operation: Operation) -> list[dict[str, Any]] | None:
        scopes = [
            scope.value
            for auth in operation.auth_callbacks
            if isinstance(auth, ScopedToken)
            for scope in auth.scopes
        ]
        return [{name: scopes} for name in _SECURITY_SCHEMES] if scopes else None

    def responses(self, operation: Operation) -> dict[int, dict[str, Any]]:
        declared = dict(super().responses(operation))
        problems = {status: _problem(status) for status in declared if status >= _FIRST_ERROR}
        return dict(sorted((declared | problems).items()))

    def _extract_parameters(self, model: Any) -> list[dict[str, Any]]:
        """Return parameters; ninja's `examples` of a parameter is a list, OpenAPI's is not."""
        parameters: list[dict[str, Any]] = super()._extract_parameters(model)
        for parameter in parameters:
            if examples := parameter.pop("examples", None):
                parameter["example"] = examples[0]
        return parameters


def _headers_of(status: int) -> tuple[str, ...]:
    """Return the headers of responses with a status."""
    return {401: ("WWW-Authenticate",), 429: ("Retry-After",), 503: ("Retry-After",)}.get(
        status, ()
    )


def _problem(status: int) -> dict[str, Any]:
    code, detail = _CODES[status]
    return {
        "description": HTTPStatus(status).phrase,
        "content": {
            CONTENT_TYPE: {
                "schema": {"$ref": "#/components/schemas/Problem"},
                "example": problem_details(status, code, detail, request_id="5f0c1d7a"),
            }
        },
    }
