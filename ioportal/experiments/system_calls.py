"""System calls of runs, as frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ioportal.experiments.models import SystemCall, SystemCallWindow
from ioportal.telemetry.copy import read_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioportal.experiments.models import Run

_CALLS = {
    "call": pl.String(),
    "path": pl.String(),
    "error": pl.String(),
    "count": pl.Int64(),
    "timed": pl.Int64(),
    "duration_s": pl.Float64(),
    "first_line": pl.Int64(),
}
_WINDOWS = {
    "second": pl.Int64(),
    "call": pl.String(),
    "failed": pl.Boolean(),
    "count": pl.Int64(),
    "duration_s": pl.Float64(),
}


def calls_of(runs: Sequence[Run]) -> pl.DataFrame:
    """Return the calls of runs by call, path and error; keys may repeat."""
    rows = SystemCall.objects.filter(run__in=runs).values_list(*_CALLS)
    return read_rows(rows, _CALLS).with_columns(pl.col("error").fill_null(""))


def windows_of(run: Run) -> pl.DataFrame:
    """Return the calls of a run by 10 s, call and whether they failed."""
    return read_rows(SystemCallWindow.objects.filter(run=run).values_list(*_WINDOWS), _WINDOWS)
