"""Building blocks of rate series: bins, observed intervals, mean times."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from math import ceil
from typing import TYPE_CHECKING

import polars as pl

from collectors.tables import UTC_US
from ioportal.core.formatting import duration
from ioportal.core.timelines import OBSERVED, united
from ioportal.telemetry import coverage
from ioportal.telemetry.models import Coverage

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from ioportal.core.time_ranges import TimeRange
    from ioportal.core.timelines import Steps
    from ioportal.site.models import Target
    from ioportal.telemetry.coverage import Interval

# Bin widths, each a multiple of some finer one; from an hour on, whole hours.
_BINS = tuple(timedelta(seconds=n) for n in (10, 20, 30, 60, 120, 300, 600, 1_200, 1_800))
_HOUR = timedelta(hours=1)


def bin_width(
    shortest: timedelta, level_width: timedelta, widths: Sequence[timedelta] = _BINS
) -> timedelta:
    """Return the smallest bin width of at least `shortest` and of the level's width."""
    fitting = (width for width in widths if width >= max(shortest, level_width))
    return next(fitting, _HOUR * ceil(shortest / _HOUR))


def without(observed: pl.DataFrame, pending: Mapping[int, Sequence[Interval]]) -> pl.DataFrame:
    """Return the parts of observed intervals, a frame of `OBSERVED`, outside pending ones."""
    if not any(pending.values()):
        return observed
    rows = [
        (source, *part)
        for source, start, end in observed.iter_rows()
        for part in coverage.gaps(pending.get(source, []), start, end)
    ]
    return pl.DataFrame(rows, schema=OBSERVED, orient="row")


def seconds_within(intervals: pl.DataFrame, start: datetime, end: datetime) -> float:
    """Return how many seconds of [start, end) any source observed; a frame of `OBSERVED`."""
    begin, stop = (pl.lit(moment, UTC_US) for moment in (start, end))
    inside = intervals.select(
        pl.lit(0, pl.Int64).alias("source"),
        pl.max_horizontal("start", begin).alias("start"),
        pl.min_horizontal("end", stop).alias("end"),
    ).filter(pl.col("end") > pl.col("start"))
    return float(united(inside).select(seconds("start", "end").sum()).item() or 0.0)


def exported(targets: Collection[int], window: TimeRange) -> str:
    """Return how much of a range export statistics of any target cover: '0:40:00 of 1:00:00'."""
    known = observed_apart(Coverage.Source.EXPORTS, coverage.contiguous(targets), window)
    whole = (window.end - window.start).total_seconds()
    parts = seconds_within(known, window.start, window.end), whole
    return " of ".join(duration(round(part)) for part in parts)


def mean_times(sums: Steps) -> Steps:
    """Return mean service and queue times of timed RPCs, in microseconds, from their sums."""
    timed = pl.when(pl.col("timed") > 0).then(pl.col("timed"))
    frame = sums.frame.select(
        "start",
        "end",
        "observed",
        (pl.col("service_us_sum") / timed).alias("service"),
        ((pl.col("total_us_sum") - pl.col("service_us_sum")) / timed).alias("queue"),
    )
    return replace(sums, frame=frame, kinds=("service", "queue"))


def last_observed(source: Coverage.Source, targets: Iterable[Target]) -> dict[int, datetime]:
    """Return the last observed time by target; targets without any are left out."""
    return coverage.last_observed(source, _poll_gaps(targets))


def observed(source: Coverage.Source, targets: Iterable[Target], window: TimeRange) -> pl.DataFrame:
    """Return the observed intervals of targets in a range: a frame of `OBSERVED`."""
    return observed_apart(source, _poll_gaps(targets), window)


def _poll_gaps(targets: Iterable[Target]) -> dict[int, timedelta]:
    return {target.pk: target.poll_gap for target in targets}


def observed_apart(
    source: Coverage.Source, gaps: Mapping[int, timedelta], window: TimeRange
) -> pl.DataFrame:
    """Return observed intervals of sources in a range, by their maximal gap between reads."""
    intervals = coverage.by_source(source, gaps, window.start, window.end)
    rows = [(source_id, *interval) for source_id, interval in intervals]
    return pl.DataFrame(rows, schema=OBSERVED, orient="row")


def seconds(start: str, end: str) -> pl.Expr:
    """Return the seconds between two columns of times."""
    return (pl.col(end) - pl.col(start)).dt.total_microseconds() / 1e6
