"""Windows of counts as rates over time: steps of true width, with gaps where data is missing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

import polars as pl

from collectors.tables import UTC_US

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

_DIGITS = 12

# Columns of windows for `rates`, in addition to a column of counts per kind.
WINDOW = {
    "source": pl.Int64(),
    "start": UTC_US,
    "end": UTC_US,
    "seconds": pl.Float64(),  # observed seconds in [start, end): divisor of rates
}
OBSERVED = {"source": pl.Int64(), "start": UTC_US, "end": UTC_US}


class Known(Enum):
    """State of knowledge of an incompletely observed interval."""

    NOTHING = "nothing"
    MEAN = "mean"  # distant reads: only the mean between them is known
    PART = "part"  # some sources observed
    PENDING = "pending"  # observed, but not attributed yet


@dataclass(frozen=True)
class Gap:
    """An interval without observation of a source."""

    start: datetime
    end: datetime
    known: Known


@dataclass(frozen=True)
class Steps:
    """Piecewise constant rates.

    `frame` has columns ``start``, ``end``, ``observed`` (number of observed sources; 0 for a mean
    between distant reads) and a rate per second for each kind. Rows are sorted and do not overlap.
    `sources` is the total number of sources.
    `pending` are sorted, disjoint intervals with observed figures that are not attributed yet.
    """

    frame: pl.DataFrame
    kinds: tuple[str, ...]
    sources: int
    pending: tuple[tuple[datetime, datetime], ...] = ()

    def only(self, kinds: Sequence[str]) -> Steps:
        """Return the same steps with some of the kinds."""
        frame = self.frame.select("start", "end", "observed", *kinds)
        return replace(self, frame=frame, kinds=tuple(kinds))

    def gaps(self, start: datetime, end: datetime) -> list[Gap]:
        """Return the incompletely known parts of [start, end), in order."""
        return [part for gap in self._gaps(start, end) for part in self._parts(gap)]

    def _parts(self, gap: Gap) -> list[Gap]:
        """Split a gap into pending intervals and other parts."""
        parts, since = [], gap.start
        for start, end in self.pending if gap.known is not Known.MEAN else ():
            begin, stop = max(start, since), min(end, gap.end)
            if begin >= stop:
                continue
            if begin > since:
                parts.append(Gap(since, begin, gap.known))
            parts.append(Gap(begin, stop, Known.PENDING))
            since = stop
        return [*parts, Gap(since, gap.end, gap.known)] if since < gap.end else parts

    def _gaps(self, start: datetime, end: datetime) -> list[Gap]:
        gaps: list[Gap] = []
        reached = start
        pieces = self.frame.select("start", "end", "observed").iter_rows()
        for known_from, known_until, observed in (*pieces, (end, end, self.sources)):
            for begin, stop, known in (
                (reached, min(known_from, end), Known.NOTHING),
                (
                    max(known_from, reached),
                    min(known_until, end),
                    Known.PART if observed else Known.MEAN,
                ),
            ):
                if begin >= stop or (known is Known.PART and observed == self.sources):
                    continue
                if gaps and gaps[-1].end == begin and gaps[-1].known is known:
                    gaps[-1] = Gap(gaps[-1].start, stop, known)
                else:
                    gaps.append(Gap(begin, stop, known))
            reached = max(reached, known_until)
        return gaps


def rates(
    windows: pl.DataFrame, observed: pl.DataFrame, kinds: Sequence[str], sources: int
) -> Steps:
    """Sum the rates of all sources.

    Steps begin and end at the bounds of windows, so counts are not spread beyond their window. An
    observed source without a window has a rate of zero.

    Args:
        windows: columns of `WINDOW` and a count per kind; null (not counted there) adds nothing.
            Windows without observed seconds are excluded: they have no rate.
        observed: columns of `OBSERVED`.
        kinds: columns of counts.
        sources: total number of sources, observed or not.

    Returns:
        Steps where a source was observed or a window exists; without both, no steps.
    """
    windows = windows.filter(pl.col("seconds") > 0)
    intervals = united(observed)
    change = {kind: pl.col(kind).fill_null(0) / pl.col("seconds") for kind in kinds}
    starts = windows.select(pl.col("start").alias("at"), active=1, observed=0, **change)
    ends = windows.select(
        pl.col("end").alias("at"), active=-1, observed=0, **{k: -rate for k, rate in change.items()}
    )
    no_change = dict.fromkeys(kinds, pl.lit(0.0))
    observed_starts = intervals.select(
        pl.col("start").alias("at"), active=0, observed=1, **no_change
    )
    observed_ends = intervals.select(pl.col("end").alias("at"), active=0, observed=-1, **no_change)
    frame = (
        pl.concat([starts, ends, observed_starts, observed_ends], how="vertical_relaxed")
        .group_by("at")
        .sum()
        .sort("at")
        .select(
            pl.col("at").alias("start"),
            pl.col("at").shift(-1).alias("end"),
            pl.col("observed").cum_sum().cast(pl.Int64),
            (pl.col("active").cum_sum() > 0).alias("active"),
            # Cumulative sums leave rounding errors; where no window is active, the rate is 0.
            *(
                pl.when(pl.col("active").cum_sum() > 0)
                .then(pl.col(kind).cum_sum().clip(0).round_sig_figs(_DIGITS))
                .otherwise(0.0)
                .alias(kind)
                for kind in kinds
            ),
        )
        .filter(pl.col("end").is_not_null(), (pl.col("observed") > 0) | pl.col("active"))
        .drop("active")
    )
    return Steps(frame, tuple(kinds), sources)


def clipped(windows: pl.DataFrame, observed: pl.DataFrame, kinds: Sequence[str]) -> pl.DataFrame:
    """Cut windows of a fixed grid to their observed parts.

    A trace that begins in the middle of a window has no information about the time before.

    Args:
        windows: columns of `WINDOW` and a count per kind; ``seconds`` are replaced.
        observed: columns of `OBSERVED`.
        kinds: columns of counts.

    Returns:
        The windows that intersect an interval, with adjusted ``start``, ``end`` and ``seconds``.
    """
    begin = pl.max_horizontal("start", "observed_from")
    stop = pl.min_horizontal("end", "observed_until")
    intervals = observed.rename({"start": "observed_from", "end": "observed_until"})
    return (
        windows.drop("seconds")
        .join(intervals, on="source")
        .filter(begin <= stop)
        .group_by("source", "start", "end", *kinds, maintain_order=True)
        .agg(
            begin.min().alias("begin"),
            stop.max().alias("stop"),
            (stop - begin).dt.total_microseconds().sum().truediv(1e6).alias("seconds"),
        )
        .select(
            "source",
            pl.col("begin").alias("start"),
            pl.col("stop").alias("end"),
            "seconds",
            *kinds,
        )
    )


def within(steps: Steps, start: datetime, end: datetime) -> Steps:
    """Cut steps to [start, end); rates do not change."""
    frame = steps.frame.filter(pl.col("end") > start, pl.col("start") < end).with_columns(
        pl.max_horizontal("start", pl.lit(start, UTC_US)),
        pl.min_horizontal("end", pl.lit(end, UTC_US)),
    )
    return replace(steps, frame=frame)


def in_fewer_steps(steps: Steps, at_most: int) -> Steps:
    """Join neighbouring steps to about `at_most`; rates become means over time.

    Whole steps are joined, never across a gap, and observed steps never with a mean over a gap.
    """
    frame = steps.frame
    if frame.height <= at_most:
        return steps
    seconds = (pl.col("end") - pl.col("start")).dt.total_microseconds() / 1e6
    is_mean = pl.col("observed") == 0
    apart = ((pl.col("start") != pl.col("end").shift()) | (is_mean != is_mean.shift())).fill_null(
        value=True
    )
    together = -(-frame.height // at_most)
    joined = (
        frame.with_columns(apart.cum_sum().alias("run"))
        .with_columns((pl.int_range(pl.len()).over("run") // together).alias("part"))
        .group_by("run", "part", maintain_order=True)
        .agg(
            pl.col("start").first(),
            pl.col("end").last(),
            pl.col("observed").min(),
            *(((pl.col(kind) * seconds).sum() / seconds.sum()).alias(kind) for kind in steps.kinds),
        )
        .drop("run", "part")
    )
    return replace(steps, frame=joined)


def united(intervals: pl.DataFrame) -> pl.DataFrame:
    """Merge overlapping or adjacent intervals of a source, and drop empty intervals.

    Input and result have the columns of `OBSERVED`; the result is sorted by source and time.
    """
    reached = pl.col("end").cum_max().shift().over("source")
    return (
        intervals.sort("source", "start")
        .with_columns((pl.col("start") > reached).fill_null(value=True).cum_sum().alias("island"))
        .group_by("source", "island", maintain_order=True)
        .agg(pl.col("start").min(), pl.col("end").max())
        .filter(pl.col("end") > pl.col("start"))
        .drop("island")
    )
