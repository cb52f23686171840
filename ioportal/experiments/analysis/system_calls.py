"""Totals of system calls over the parts of a log, within bounded memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from collectors.tables import SYSTEM_CALLS

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_PATHS = 1_000_000
_PENDING_ROWS = 400_000  # added before they are summed up

_CALL = ("call", "path", "error")
_WINDOW = ("second", "call", "failed")
_PATH = pl.col("path")
_DIRECTORY = _PATH.str.strip_chars_end("/").str.extract(r"^(.*/)")  # null: a relative name
_TOP_DIRECTORY = _PATH.str.extract(r"^(/[^/]*/)").fill_null("/")


class Totals:
    """Sums of frames of `tables.SYSTEM_CALLS`.

    Beyond `max_paths` distinct paths, later paths are replaced by their directory, with a final
    slash: counts stay complete.
    """

    def __init__(self, max_paths: int = MAX_PATHS) -> None:
        self._max_paths = max_paths
        self._calls = _Sums(_summed_calls)
        self._windows = _Sums(_summed_windows)

    def add(self, part: pl.DataFrame) -> None:
        """Add the rows of a part.

        Args:
            part: a frame of `tables.SYSTEM_CALLS`, in the order of the log.
        """
        windows = part.filter(pl.col("second").is_not_null()).with_columns(
            failed=pl.col("error") != ""
        )
        self._windows.add(windows.select(*_WINDOW, "count", "duration_s"))
        if self._calls.add(part.drop("second")):
            self._fold()

    @property
    def calls(self) -> pl.DataFrame:
        """One row per call x path x error: count, timed, duration_s, first_line; by first_line."""
        self._sum_up()
        return self._calls.total.sort("first_line", *_CALL)

    @property
    def windows(self) -> pl.DataFrame:
        """One row per 10 s x call x failed: count, duration_s; calls without a time are missing."""
        self._windows.sum_up()
        return self._windows.total.sort(_WINDOW)

    def _sum_up(self) -> None:
        self._calls.sum_up()
        self._fold()

    def _fold(self) -> None:
        """Replace paths that exceed the limit: by their directory, then by shorter ones."""
        for folded in (_DIRECTORY.fill_null("./"), _TOP_DIRECTORY, pl.lit("/")):
            paths = self._calls.total.group_by("path").agg(pl.min("first_line"))
            if paths.height <= self._max_paths:
                return
            # Half of the limit leaves room for the directories.
            kept = paths.bottom_k(self._max_paths // 2, by="first_line")["path"].implode()
            self._calls.replace(
                self._calls.total.with_columns(
                    path=pl.when(_PATH.is_null() | _PATH.is_in(kept)).then(_PATH).otherwise(folded)
                )
            )


class _Sums:
    """Rows that are summed up whenever many were added."""

    def __init__(self, summed: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
        self._summed = summed
        self.total = summed(pl.DataFrame(schema={**SYSTEM_CALLS.columns, "failed": pl.Boolean()}))
        self._parts: list[pl.DataFrame] = []
        self._rows = 0

    def add(self, part: pl.DataFrame) -> bool:
        """Add rows; return whether they were summed up."""
        self._parts.append(part)
        self._rows += part.height
        if self._rows < _PENDING_ROWS:
            return False
        self.sum_up()
        return True

    def sum_up(self) -> None:
        """Include the added rows in the total."""
        self.replace(pl.concat([self.total, *self._parts], how="diagonal"))

    def replace(self, rows: pl.DataFrame) -> None:
        """Replace all rows."""
        self._parts, self._rows = [], 0
        self.total = self._summed(rows)


def _summed_calls(rows: pl.DataFrame) -> pl.DataFrame:
    return (
        rows.lazy()
        .group_by(_CALL)
        .agg(pl.sum("count", "timed", "duration_s"), pl.min("first_line"))
        .collect(engine="streaming")  # the fastest one for many groups
    )


def _summed_windows(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.group_by(_WINDOW).agg(pl.sum("count", "duration_s"))
