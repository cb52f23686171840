"""``GET /api/v1/jobs/`` and ``GET /api/v1/panda/jobs/``: tables of jobs (docs/api.md)."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import polars as pl
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from ninja import Router

from collectors.tables import UTC_US
from ioportal.api.authentication import READER, reader
from ioportal.api.problems import Problem, invalid, problems
from ioportal.api.responses import answer
from ioportal.api.selection import selected
from ioportal.api.tables import columns
from ioportal.api.tables.pages import Rows
from ioportal.core.spreadsheets import is_formula

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from django.http.response import HttpResponseBase

    from ioportal.api.tables.columns import Table
    from ioportal.api.tables.pages import Position


JSON = "application/json"
_BYTES_AT_ONCE = 1 << 20
_ISO = "%Y-%m-%dT%H:%M:%S%.fZ"


def json_page(frame: pl.DataFrame, following: Position | None) -> bytes:
    """Return a page as an object: `rows`, and `next`, the cursor of the next page or null."""
    cursor = json.dumps(following.cursor if following else None)
    return f'{{"next": {cursor}, "rows": {_with_text_times(frame).write_json()}}}\n'.encode()


def csv(frames: Iterable[pl.DataFrame]) -> Iterator[bytes]:
    """Yield a CSV file. Text that a spreadsheet would run as a formula gets an apostrophe."""
    for number, frame in enumerate(frames):
        safe = _without_formulas(_with_text_times(frame))
        yield safe.write_csv(include_header=not number).encode()


def ndjson(frames: Iterable[pl.DataFrame]) -> Iterator[bytes]:
    """Yield an object per line."""
    for frame in frames:
        yield _with_text_times(frame).write_ndjson().encode()


def parquet(frames: Iterable[pl.DataFrame]) -> Iterator[bytes]:
    """Yield a Parquet file: it is written to disk first, as its end describes its parts."""
    with TemporaryDirectory() as folder:
        parts = Path(folder, "parts")
        parts.mkdir()
        for number, frame in enumerate(frames):
            frame.write_ipc(parts / f"{number:06}.arrow", compression="zstd")
        whole = Path(folder, "whole.parquet")
        pl.scan_ipc(parts / "*.arrow").sink_parquet(whole)
        with whole.open("rb") as file:
            while content := file.read(_BYTES_AT_ONCE):
                yield content


STREAMS: dict[str, Callable[[Iterable[pl.DataFrame]], Iterator[bytes]]] = {
    "text/csv": csv,
    "application/x-ndjson": ndjson,
    "application/vnd.apache.parquet": parquet,
}
NAMES = {"json": JSON, **{stream.__name__: kind for kind, stream in STREAMS.items()}}


def _with_text_times(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.col(pl.Datetime("us", "UTC")).dt.strftime(_ISO))


def _without_formulas(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(
        pl.col(name).replace({text: f"'{text}" for text in texts if is_formula(text)})
        for name, kind in frame.schema.items()
        if kind == pl.String and (texts := frame[name].drop_nulls().unique().to_list())
    )


DEFAULT_SORT = "-id"
_ROWS, _MOST_ROWS = 1_000, 10_000  # of a JSON page
_ROWS_AT_ONCE = 10_000  # of a stream
_DIGITS = 9
_OWN = ("cursor", "fields", "format", "limit", "sort")
_JSON_TYPES: dict[pl.DataType, tuple[str, dict[str, str]]] = {  # others: string
    pl.Int64(): ("integer", {}),
    pl.Float64(): ("number", {}),
    pl.Boolean(): ("boolean", {}),
    UTC_US: ("string", {"format": "date-time"}),
}
_ABOUT_OWN = {
    "cursor": "Start of the page: the value `next` of the page before",
    "fields": "Columns, separated by commas; without it all",
    "format": f"{', '.join(NAMES)}; instead of the header Accept",
    "limit": f"Rows: of a JSON page at most {_MOST_ROWS:,}; of other formats all without it",
    "sort": "Column, with - in front for descending order; unknown values come last",
}

router = Router(tags=["Tables"])


def _described(table: Table) -> dict[str, object]:
    filters = table.kind.filter_set.base_filters
    labels = {name: str(filter_.label) for name, filter_ in filters.items()} | _ABOUT_OWN
    return {
        "parameters": [
            {"in": "query", "name": name, "description": label, "schema": {"type": "string"}}
            for name, label in labels.items()
        ],
        **answer(
            "A page of rows as JSON, or all rows in another format",
            {"next": "WzEwNDEsMTA0MV0", "rows": [{"id": 1042, "opens": 2106213}]},
            *STREAMS,
            schema=_page_schema(table),
        ),
    }


def _page_schema(table: Table) -> dict[str, Any]:
    """Return the JSON schema of a page of rows."""
    row = {"type": "object", "properties": {name: _schema(table, name) for name in table.paths}}
    return {
        "type": "object",
        "required": ["next", "rows"],
        "properties": {
            "next": {"type": ["string", "null"], "description": "Value of `cursor`; null: the end"},
            "rows": {"type": "array", "items": row},
        },
    }


def _schema(table: Table, column: str) -> dict[str, Any]:
    name, more = _JSON_TYPES.get(table.type_of(column), ("string", {}))
    return {"type": [name, "null"] if table.is_nullable(column) else name, **more}


_RESPONSES = problems(406)


@router.get(
    "/jobs/",
    auth=READER,
    summary="Table of batch jobs",
    response=_RESPONSES,
    openapi_extra=_described(columns.JOBS),
)
def jobs(request: HttpRequest) -> HttpResponseBase:
    """Return batch jobs by the filters of the job list, with all metrics (docs/metrics.md)."""
    return _respond(request, columns.JOBS)


@router.get(
    "/panda/jobs/",
    auth=READER,
    summary="Table of PanDA jobs",
    response=_RESPONSES,
    openapi_extra=_described(columns.PANDA),
)
def panda_jobs(request: HttpRequest) -> HttpResponseBase:
    """Return PanDA jobs by the filters of the list; `batch_job_*` belongs to the batch job."""
    return _respond(request, columns.PANDA)


def _respond(request: HttpRequest, table: Table) -> HttpResponseBase:
    kind = _format(request)
    rows = _rows(request, table)
    limit = _limit(request, _MOST_ROWS if kind == JSON else None)
    start = rows.position(request.GET.get("cursor", ""))
    if kind == JSON:
        frame, following = next(rows.pages(start, limit or _ROWS))
        return HttpResponse(json_page(frame, following), content_type=kind)
    frames = _frames(rows, start, limit)
    first = next(frames)  # an error in it can still become an error response
    stream = STREAMS[kind]
    name = f"{table.kind.name}.{stream.__name__}"
    return StreamingHttpResponse(
        stream(chain([first], frames)),
        content_type=kind,
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _frames(rows: Rows, start: Position | None, limit: int | None) -> Iterator[pl.DataFrame]:
    """Yield all rows from a position on, or the first `limit`."""
    for frame, _ in rows.pages(start, min(_ROWS_AT_ONCE, limit or _ROWS_AT_ONCE)):
        yield frame if limit is None else frame.head(limit)
        if limit is not None and (limit := limit - frame.height) <= 0:
            return


def _format(request: HttpRequest) -> str:
    if name := request.GET.get("format"):
        if name not in NAMES:
            raise invalid("format", f"Choose one of {', '.join(NAMES)}.")
        return NAMES[name]
    kind = request.get_preferred_type([JSON, *STREAMS])
    if kind is None:
        choices = ", ".join(NAMES.values())
        raise Problem(406, "accept", f"No type in the header Accept is available: {choices}.")
    return kind


def _rows(request: HttpRequest, table: Table) -> Rows:
    """Return the rows that a query selects, with the same filters as the pages."""
    for name in request.GET:
        if name not in table.kind.filter_set.base_filters and name not in _OWN:
            raise invalid(name, "It is not known; GET /api/v1/openapi.json lists all.")
    found = selected(table.kind, reader(request), request.GET)
    names = [name for name in request.GET.get("fields", "").split(",") if name]
    sort = request.GET.get("sort") or DEFAULT_SORT
    column = sort.removeprefix("-")
    for parameter, name in (*(("fields", name) for name in names), ("sort", column)):
        if name not in table.paths:
            raise invalid(parameter, f"{name[:64]!r} is not one of {', '.join(table.paths)}.")
    return Rows(
        table,
        found,
        list(dict.fromkeys(names)) or list(table.paths),
        sort=column,
        descending=sort.startswith("-"),
    )


def _limit(request: HttpRequest, most: int | None) -> int | None:
    text = request.GET.get("limit", "")
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS and int(text)):
        raise invalid("limit", "Send a whole number above 0.")
    if most and int(text) > most:
        raise invalid("limit", f"A JSON page has at most {most:,} rows.")
    return int(text)
