"""The most that was done within a span of time, from windows that may be of any width."""

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
    """Add up, at the end of each window, what was done in the span before it.

    Only windows that lie in the span as a whole count, so that nothing is told that may not have
    been done in it. A window that is wider than the span stands for itself, with as much as it did
    in such a span on average: in some span inside it was done no less.

    Args:
        windows: columns key (integers), start, end (datetimes) and the amounts (numbers, no nulls);
            those of one key may overlap, where several servers were read.
        within: the span.
        amounts: the columns to add up.

    Returns:
        Columns key, end and the amounts, a row for each window, in order of key and end.
    """
    ordered = windows.sort("key", "end", "start")
    if ordered.is_empty():
        return ordered.select("key", "end", *amounts)
    span = within // _MICROSECOND
    line = _Line.of(ordered, span)
    begins, ends = line.places(ordered, "start"), line.places(ordered, "end")
    is_wide = ends - begins > span
    by_start = np.argsort(begins, kind="stable")
    upto = np.searchsorted(ends, ends, side="right")
    # (those that began before the span have ended by now: none but the wide ones lasts longer)
    before = np.searchsorted(begins[by_start], ends - span, side="left")
    found = {}
    for name in amounts:
        amount = _floats(ordered[name])
        narrow = np.where(is_wide, 0, amount)
        inside = _added_up(narrow, upto) - _added_up(narrow[by_start], before)
        found[name] = np.where(is_wide, amount * span / np.maximum(ends - begins, 1), inside)
    return ordered.select("key", "end").with_columns(pl.Series(*one) for one in found.items())


@dataclass(frozen=True)
class _Line:
    """All keys' times on one line, one key's after another's: in microseconds."""

    keys: pl.Series  # in order
    first: int
    length: int  # of one key's part, and a gap besides

    @classmethod
    def of(cls, windows: pl.DataFrame, gap: int) -> _Line:
        times = np.concatenate(
            [windows[name].dt.timestamp("us").to_numpy() for name in ("start", "end")]
        )
        first = int(times.min())
        length = int(times.max()) - first + 1
        return cls(windows["key"].unique().sort(), first, length + gap)

    def places(self, windows: pl.DataFrame, column: str) -> Ints:
        key = np.searchsorted(self.keys.to_numpy(), windows["key"].to_numpy())
        time = windows[column].dt.timestamp("us").to_numpy()
        found: Ints = key * self.length + time - self.first
        return found


def _floats(amounts: pl.Series) -> Floats:
    found: Floats = amounts.cast(pl.Float64).to_numpy()
    return found


def _added_up(amount: Floats, upto: Ints) -> Floats:
    found: Floats = np.concatenate([[0.0], np.cumsum(amount)])[upto]
    return found
