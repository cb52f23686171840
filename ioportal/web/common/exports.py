"""CSV and JSON exports of pages: exact values, UTC times, streamed, no formulas in cells."""

from __future__ import annotations

import csv
import io
import json
from datetime import datetime
from functools import wraps
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

from django.http import HttpResponse, JsonResponse, StreamingHttpResponse

from ioportal.core.spreadsheets import is_formula

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeAlias

    from django.http import HttpRequest, HttpResponseBase

    from ioportal.web.common.requests import UserRequest

_P = ParamSpec("_P")
_View: TypeAlias = "Callable[Concatenate[UserRequest, _P], HttpResponseBase]"

_ROWS_AT_ONCE = 2_000
_ROWS_PER_PIECE = 500
_PLAIN = frozenset({int, float, bool, type(None)})  # types of values that CSV has unchanged


def accept(*formats: str) -> Callable[[_View[_P]], _View[_P]]:
    """Reject a ``format`` other than these; without one, the view responds with its page."""

    def guard(view: _View[_P]) -> _View[_P]:
        @wraps(view)
        def guarded(request: UserRequest, *args: _P.args, **kwargs: _P.kwargs) -> HttpResponseBase:
            if (name := requested_format(request)) and name not in formats:
                choices = ", ".join(formats)
                message = f"{name[:64]!r} is not available here. Choose one of: {choices}."
                return invalid_query({"format": [message]})
            return view(request, *args, **kwargs)

        guarded.formats = formats  # type: ignore[attr-defined]  # read by ioportal.api
        return guarded  # type: ignore[return-value]  # wraps() hides the plain call

    return guard


def requested_format(request: HttpRequest) -> str:
    """Return the format in the URL; "" for a page."""
    return request.GET.get("format", "")


def response(
    request: HttpRequest,
    name: str,
    about: dict[str, Any],
    header: Sequence[str],
    rows: Iterable[Sequence[object]],
) -> StreamingHttpResponse:
    """Respond with rows in the requested format: JSON, or CSV with the file name `name`.

    The JSON is one object: the members of `about`, and ``rows`` with an object per row.
    """
    if request.method != "HEAD":
        rows = _started(rows)
    if requested_format(request) == "json":
        return StreamingHttpResponse(
            _json_pieces(about, header, rows), content_type="application/json"
        )
    response = StreamingHttpResponse(
        _csv_lines(header, rows), content_type="text/csv; charset=utf-8"
    )
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "_" for c in name)
    response["Content-Disposition"] = f'attachment; filename="{safe}.csv"'
    return response


def _started(rows: Iterable[Sequence[object]]) -> Iterable[Sequence[object]]:
    """Read the first rows early, while an error can still become an error response.

    A short export is read completely, which closes its cursor even for an aborted response.
    """
    iterator = iter(rows)
    return chain(tuple(islice(iterator, _ROWS_AT_ONCE)), iterator)


def json_response(value: dict[str, Any]) -> HttpResponse:
    """Respond with one object."""
    return HttpResponse(json.dumps(value, default=_json_value), content_type="application/json")


def invalid_query(errors: dict[str, list[str]]) -> JsonResponse:
    """Respond to an invalid query of an export."""
    return JsonResponse({"errors": errors}, status=400)


def _csv_lines(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Yield the lines of a CSV file.

    Users choose the names of their jobs: text that a spreadsheet would run as a formula gets a
    leading apostrophe. JSON exports keep it unchanged.
    """
    for some in _batches(chain([header], rows)):
        lines = io.StringIO()
        cells = (
            [value if type(value) in _PLAIN else _cell(value) for value in row] for row in some
        )
        csv.writer(lines).writerows(cells)
        yield lines.getvalue()


def _json_pieces(
    about: dict[str, Any], header: Sequence[str], rows: Iterable[Sequence[object]]
) -> Iterator[str]:
    encode = json.JSONEncoder(default=_json_value).encode
    head = encode(about)[:-1]
    yield f'{head}{", " if about else ""}"rows": ['
    separator = "\n"
    for some in _batches(rows):
        yield separator + ",\n".join(encode(dict(zip(header, row, strict=True))) for row in some)
        separator = ",\n"
    yield "\n]}\n"


def _batches(rows: Iterable[Sequence[object]]) -> Iterator[list[Sequence[object]]]:
    """Yield some rows at a time: each piece of a response is compressed and sent separately."""
    iterator = iter(rows)
    while some := list(islice(iterator, _ROWS_PER_PIECE)):
        yield some


def _cell(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, list | dict):
        return json.dumps(value, default=_json_value)
    return f"'{value}" if isinstance(value, str) and is_formula(value) else value


def _json_value(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
