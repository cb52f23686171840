"""The reference of the API as a page, from its OpenAPI description."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.contrib.auth.decorators import login_not_required
from django.shortcuts import render
from django.views.decorators.http import require_safe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.http import HttpRequest, HttpResponse
    from ninja import NinjaAPI

_FIRST_ERROR = 400


@dataclass(frozen=True)
class Content:
    """A body of a request or a response."""

    kind: str
    fields: list[tuple[str, str, str]]  # name, type, description
    example: str


@dataclass(frozen=True)
class Operation:
    """A method of an address."""

    method: str
    path: str
    facts: dict[str, Any]
    schemas: dict[str, Any]

    @property
    def scopes(self) -> list[str]:
        """The scopes of tokens that permit it."""
        return next(iter(self.facts.get("security", [{}])[0].values()), [])

    @property
    def body(self) -> list[Content]:
        """The bodies that it takes."""
        return self._contents(self.facts.get("requestBody", {}))

    @property
    def responses(self) -> Iterator[tuple[str, str, list[Content]]]:
        """Yield status, description and bodies of responses that are no errors."""
        for status, response in self.facts["responses"].items():
            if int(status) < _FIRST_ERROR:
                yield status, response["description"], self._contents(response)

    @property
    def errors(self) -> list[tuple[str, str]]:
        """Status and description of its errors."""
        return [
            (status, response["description"])
            for status, response in self.facts["responses"].items()
            if int(status) >= _FIRST_ERROR
        ]

    def _contents(self, owner: dict[str, Any]) -> list[Content]:
        return [
            Content(kind, list(self._fields(content.get("schema", {}))), _text(content))
            for kind, content in owner.get("content", {}).items()
        ]

    def _fields(self, schema: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
        """Yield the properties of an object, or of the records that it contains."""
        schema = self._resolved(schema)
        for name, value in schema.get("properties", {}).items():
            details = self._resolved(value)
            yield name, _type(details), value.get("description", details.get("description", ""))
        for inner in (*schema.get("anyOf", ()), schema.get("additionalProperties")):
            if isinstance(inner, dict):
                yield from self._fields(inner)

    def _resolved(self, schema: dict[str, Any]) -> dict[str, Any]:
        reference = schema.get("$ref")
        return self.schemas[reference.rpartition("/")[2]] if reference else schema


@login_not_required
@require_safe
def page(request: HttpRequest, api: NinjaAPI) -> HttpResponse:
    """Show all operations; public, like the description itself."""
    description = json.loads(json.dumps(api.get_openapi_schema()))
    schemas = description["components"]["schemas"]
    operations = [
        Operation(method.upper(), path, facts, schemas)
        for path, methods in description["paths"].items()
        for method, facts in methods.items()
    ]
    readers_first = sorted(operations, key=lambda operation: "read" not in operation.scopes)
    return render(request, "api/docs.html", {"operations": readers_first})


def _type(schema: dict[str, Any]) -> str:
    """Return a type in words: `integer or null`."""
    if "enum" in schema:
        return " or ".join("null" if value is None else str(value) for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(part) for part in schema["anyOf"]))
    kinds = schema.get("type", "")
    return kinds if isinstance(kinds, str) else " or ".join(kinds)


def _text(content: dict[str, Any]) -> str:
    if "example" not in content:
        return ""
    example = content["example"]
    return example if isinstance(example, str) else json.dumps(example, indent=2)
