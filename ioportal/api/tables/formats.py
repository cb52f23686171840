"""Formats of tables: JSON pages, and streams of CSV, NDJSON or Parquet."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import polars as pl

from ioportal.core.spreadsheets import is_formula

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

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
