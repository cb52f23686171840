"""Sums of amounts over a sliding time span, from windows of any width."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

_MICROSECOND = timedelta(microseconds=1)


def sums(windows: pl.DataFrame, within: timedelta, amounts: Sequence[str]) -> pl.DataFrame:
    """Sum amounts over the span before the end of each window.

    Only windows entirely within the span count, so a sum is never too high. A window wider than the
    span counts alone, with its average per span: some span inside it has at least this amount.

    Args:
        windows: columns key (integers), start, end (datetimes) and the amounts (numbers, no nulls);
            windows of several servers with the same key may overlap.
        within: length of the span.
        amounts: columns to sum.

    Returns:
        Columns key, end and the amounts, with a row for each window, sorted by key and end.
    """
    ordered = windows.sort("key", "end", "start")
    if ordered.is_empty():
        return ordered.select("key", "end", *amounts)
    span = within // _MICROSECOND
    line = _Line.spanning(ordered, span)
    starts, ends = line.positions(ordered, "start"), line.positions(ordered, "end")
    is_wide = ends - starts > span
    by_start = np.argsort(starts, kind="stable")
    upto = np.searchsorted(ends, ends, side="right")
    # Narrow windows that started before the span have ended by its end.
    before = np.searchsorted(starts[by_start], ends - span, side="left")
    totals = {}
    for name in amounts:
        amount = _floats(ordered[name])
        narrow = np.where(is_wide, 0, amount)
        inside = _running_sum(narrow, upto) - _running_sum(narrow[by_start], before)
        totals[name] = np.where(is_wide, amount * span / np.maximum(ends - starts, 1), inside)
    return ordered.select("key", "end").with_columns(pl.Series(*item) for item in totals.items())


@dataclass(frozen=True)
class _Line:
    """A line of microseconds on which the times of all keys follow each other."""

    keys: pl.Series  # sorted
    first: int
    length: int  # length of one key's part, including a gap

    @classmethod
    def spanning(cls, windows: pl.DataFrame, gap: int) -> _Line:
        times = np.concatenate(
            [windows[name].dt.timestamp("us").to_numpy() for name in ("start", "end")]
        )
        first = int(times.min())
        length = int(times.max()) - first + 1
        return cls(windows["key"].unique().sort(), first, length + gap)

    def positions(self, windows: pl.DataFrame, column: str) -> Ints:
        key = np.searchsorted(self.keys.to_numpy(), windows["key"].to_numpy())
        time = windows[column].dt.timestamp("us").to_numpy()
        positions: Ints = key * self.length + time - self.first
        return positions


def _floats(amounts: pl.Series) -> Floats:
    floats: Floats = amounts.cast(pl.Float64).to_numpy()
    return floats


def _running_sum(amount: Floats, upto: Ints) -> Floats:
    running: Floats = np.concatenate([[0.0], np.cumsum(amount)])[upto]
    return running
