"""The `MeasureHistory` of a flag and the `HistorySource` that computes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from collectors.tables import UTC_US
from ioportal.jobs.analysis import sustained

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime, timedelta
    from typing import TypeAlias

    from ioportal.findings.models import Flag
    from ioportal.telemetry.coverage import Interval
    from ioportal.telemetry.levels import Level

    # Flags of one number, each with the time of its amounts.
    Spans: TypeAlias = Sequence[tuple[Flag, Interval]]

INTERVAL = {"start": UTC_US, "end": UTC_US}


@dataclass(frozen=True)
class MeasureHistory:
    """A number of a flag over time.

    `amounts` has columns ``start``, ``end`` and ``amount``: the number at the end of each interval
    with counts. None: the data is no longer retained.
    """

    number: str
    about: str
    span: Interval
    adds_up: bool  # cumulative; otherwise there is no amount between intervals
    amounts: pl.DataFrame | None

    def first_reached(self, threshold: float) -> datetime | None:
        """Return the end of the first interval at which the amount reached a threshold."""
        if self.amounts is None:
            return None
        reached = self.amounts.filter(pl.col("amount") >= threshold)
        first: datetime | None = reached.select(pl.min("end")).item()
        return first


@dataclass(frozen=True)
class HistorySource:
    """Computes the history of a number."""

    about: str
    levels: tuple[Level, ...]
    over: Callable[[Flag], Interval | None]  # time of the amounts; None: no history
    # Columns subject, start, end and amount of several flags.
    amounts: Callable[[Spans], pl.DataFrame]
    span: Callable[[Flag, Interval], Interval] = lambda _flag, over: over  # of the chart
    adds_up: bool = False


def one_by_one(
    amounts: Callable[[Flag, Interval], pl.DataFrame],
) -> Callable[[Spans], pl.DataFrame]:
    """Return a function of several flags that computes the amounts of each flag separately."""

    def of_all(spans: Spans) -> pl.DataFrame:
        frames = [
            amounts(flag, over).select(
                pl.lit(flag.subject).alias("subject"), *INTERVAL, pl.col("amount").cast(pl.Float64)
            )
            for flag, over in spans
        ]
        return pl.concat(frames)

    return of_all


def moving(windows: pl.DataFrame, span: timedelta) -> pl.DataFrame:
    """Return the totals of the span before each window's end.

    Args:
        windows: columns of `INTERVAL`, amounts, and optionally key (integers); they may overlap.
        span: length of time.

    Returns:
        The same columns, a row for each key and end, in order.
    """
    keyed = windows if "key" in windows.columns else windows.with_columns(key=pl.lit(0, pl.Int64))
    amounts = [name for name in windows.columns if name not in {"key", *INTERVAL}]
    sums = sustained.sums(keyed, span, amounts).group_by("key", "end").agg(pl.max(*amounts))
    starts = keyed.group_by("key", "end").agg(pl.min("start"))
    return starts.join(sums, on=["key", "end"]).sort("key", "end").select(windows.columns)
