"""Totals of system calls over the parts of a log."""

from __future__ import annotations

import polars as pl

from collectors.tables import SYSTEM_CALLS

_KEY = ("call", "path", "error")
_SUMS = (pl.sum("count", "timed", "duration_s"), pl.min("first_line"))
_WINDOW = ("second", "call", "failed")


class Totals:
    """Adds up frames of `tables.SYSTEM_CALLS`; memory grows with the number of distinct paths.

    Attributes:
        calls: one row per call x path x error: count, timed, duration_s, first_line.
        windows: one row per 10 s x call x failed: count, duration_s; none without times.
    """

    def __init__(self) -> None:
        self._parts = [SYSTEM_CALLS.empty().drop("second")]
        self._windows = [self._windowed(SYSTEM_CALLS.empty())]

    def add(self, part: pl.DataFrame) -> None:
        """Add the rows of a part."""
        self._parts = [pl.concat([self.calls, part.select(*self._parts[0].columns)])]
        self._windows = [self.windows, self._windowed(part)]

    @property
    def calls(self) -> pl.DataFrame:
        """The totals by call, path and error."""
        return pl.concat(self._parts).group_by(_KEY).agg(*_SUMS).sort("first_line")

    @property
    def windows(self) -> pl.DataFrame:
        """The totals by time."""
        joined = pl.concat(self._windows)
        return joined.group_by(_WINDOW).agg(pl.sum("count", "duration_s")).sort(_WINDOW)

    @staticmethod
    def _windowed(part: pl.DataFrame) -> pl.DataFrame:
        return (
            part.filter(pl.col("second").is_not_null())
            .with_columns(failed=pl.col("error") != "")
            .select(*_WINDOW, "count", "duration_s")
        )
