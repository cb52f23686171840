"""CSV and JSON twins of what pages show: exact values, UTC times, streamed."""

from __future__ import annotations

import csv
import json
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

from django.http import HttpResponse, JsonResponse, StreamingHttpResponse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Row = Sequence[object] if TYPE_CHECKING else tuple
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


class _Echo:
    """A file that hands back what is written to it."""

    def write(self, text: str) -> str:
        return text


def csv_response(name: str, header: Sequence[str], rows: Iterable[Row]) -> StreamingHttpResponse:
    """Stream rows as a CSV file to be saved under `name`.

    A text that a spreadsheet would run as a formula gets an apostrophe in front: names of jobs are
    chosen by their users. The JSON twin has every text as it is.
    """
    writer = csv.writer(_Echo())
    lines = (writer.writerow([_cell(v) for v in row]) for row in chain([header], rows))
    response = StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response


def json_rows_response(
    about: dict[str, Any], key: str, header: Sequence[str], rows: Iterable[Row]
) -> StreamingHttpResponse:
    """Stream an object of `about`'s members and, under `key`, one object per row."""
    return StreamingHttpResponse(
        _json_pieces(about, key, header, rows), content_type="application/json"
    )


def json_response(value: dict[str, Any]) -> JsonResponse:
    """Answer with one object."""
    return JsonResponse(value, json_dumps_params={"default": str})


def refuse(errors: dict[str, list[str]]) -> HttpResponse:
    """Answer a twin's query that was not understood."""
    return JsonResponse({"errors": errors}, status=400)


def _json_pieces(
    about: dict[str, Any], key: str, header: Sequence[str], rows: Iterable[Row]
) -> Iterator[str]:
    head = json.dumps(about, default=_json_value)[:-1]
    yield f"{head}{', ' if about else ''}{json.dumps(key)}: ["
    for number, row in enumerate(rows):
        yield ("\n" if number == 0 else ",\n") + json.dumps(
            dict(zip(header, row, strict=True)), default=_json_value
        )
    yield "\n]}\n"


def _cell(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str) and value.startswith(_FORMULA_STARTS):
        return f"'{value}"
    return "" if value is None else value


def _json_value(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
