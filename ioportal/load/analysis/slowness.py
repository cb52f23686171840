"""Slow intervals of a server: its RPCs take several times as long as usual."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import polars as pl

from ioportal.load.analysis.waiting import US_PER_S, WINDOW, Slowdown

TIMES = {
    "server": pl.Int64(),
    "start": pl.Datetime("us", "UTC"),
    "took_us": pl.Float64(),  # arrival to end, of all RPCs with a known baseline
    "usual_us": pl.Float64(),  # baseline of as many RPCs of the same kinds
}


@dataclass(frozen=True)
class SlownessCriteria:
    """Bounds of slow intervals.

    An interval lasts while RPCs take at least `leave` times as long as usual, and counts if a
    window reaches `enter` times. Pauses up to `max_pause` are included.
    """

    enter: float = 3.0
    leave: float = 1.5
    max_pause: timedelta = timedelta(minutes=2)
    min_duration: timedelta = timedelta(seconds=30)


# Every window in which RPCs took this many times as long as usual.
EVERY_SLOW_WINDOW = SlownessCriteria(
    enter=1.5, leave=1.5, max_pause=timedelta(0), min_duration=timedelta(0)
)


def slow_intervals(times: pl.DataFrame, criteria: SlownessCriteria | None = None) -> list[Slowdown]:
    """Find the intervals in which a server was slower than its baseline, worst first.

    A window's factor is the time of its RPCs over the usual time of as many RPCs of the same
    kinds. A different mix of RPCs alone is not slowness.

    Args:
        times: columns of `TIMES`; windows that are not slow may be missing.
        criteria: bounds of the intervals.

    Source: docs/metrics.md, "Slow intervals".
    """
    bounds = criteria or SlownessCriteria()
    factors = (
        times.filter(pl.col("usual_us") > 0)
        .with_columns(factor=pl.col("took_us") / pl.col("usual_us"))
        .filter(pl.col("factor") >= bounds.leave)
        .sort("server", "start")
    )
    pause = pl.col("start").diff().over("server") > WINDOW + bounds.max_pause
    intervals = (
        factors.with_columns(interval=pause.fill_null(value=True).cum_sum())
        .group_by("server", "interval")
        .agg(
            start=pl.min("start"),
            end=pl.max("start") + WINDOW,
            factor=pl.max("factor"),
            waited_s=(pl.col("took_us") - pl.col("usual_us")).sum() / US_PER_S,
        )
        .filter(
            pl.col("factor") >= bounds.enter,
            pl.col("end") - pl.col("start") >= bounds.min_duration,
        )
        .sort("waited_s", "server", "start", descending=[True, False, False])
    )
    return [Slowdown(**row) for row in intervals.drop("interval").iter_rows(named=True)]


def calm_windows(times: pl.DataFrame, before: datetime, count: int) -> list[datetime]:
    """Return the latest windows before a time in which a server was not slow, in order.

    Args:
        times: columns of `TIMES`, of one server.
        before: end of the last window, at the latest.
        count: number of windows, at most.
    """
    is_slow = pl.col("took_us") >= EVERY_SLOW_WINDOW.leave * pl.col("usual_us")
    calm = times.filter(pl.col("start") < before, ~is_slow)
    return calm["start"].sort().tail(count).to_list()
