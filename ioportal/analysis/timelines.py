"""Windows of counts as rates over time: steps of true width, gaps where nothing was observed."""

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

# What `rates` takes besides a column of counts per kind.
WINDOW = {
    "source": pl.Int64(),
    "start": UTC_US,
    "end": UTC_US,
    "seconds": pl.Float64(),  # observed ones among [start, end): what rates divide by
}
OBSERVED = {"source": pl.Int64(), "start": UTC_US, "end": UTC_US}


class Known(Enum):
    """What is known of an interval that was not observed whole."""

    NOTHING = "nothing"
    MEAN = "mean"  # two reads are so far apart that only the mean between them is known
    PART = "part"  # some sources were observed
    PENDING = "pending"  # observed, but not attributed yet


@dataclass(frozen=True)
class Gap:
    """An interval in which a source was not observed."""

    start: datetime
    end: datetime
    known: Known


@dataclass(frozen=True)
class Steps:
    """Rates that are constant between two moments.

    `frame` has columns ``start``, ``end``, ``observed`` (sources that were; 0 where two reads are
    so far apart that only a mean is known) and one rate per second for each kind; rows are in order
    and do not overlap.
    `sources` is how many there are to observe.
    `pending` are intervals, in order and apart, in which some source was observed and its figures
    are not attributed yet.
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
        """Return the parts of [start, end) of which not all is known, in order."""
        return [part for gap in self._gaps(start, end) for part in self._parts(gap)]

    def _parts(self, gap: Gap) -> list[Gap]:
        """Set pending intervals apart from the rest of a gap."""
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
    """Add up the rates of all sources.

    Windows keep their own bounds: a step begins and ends where some window does, and nothing is
    spread beyond the window that it was counted in. Where a source was observed and has no window,
    it did nothing.

    Args:
        windows: columns of `WINDOW` and a count per kind; null (not counted there) adds nothing.
            Those without observed seconds are left out: they have no rate.
        observed: columns of `OBSERVED`.
        kinds: the columns of counts.
        sources: how many there are to observe, seen or not.

    Returns:
        Steps wherever a source was observed or a window is; none without windows and intervals.
    """
    windows = windows.filter(pl.col("seconds") > 0)
    seen = united(observed)
    change = {kind: pl.col(kind).fill_null(0) / pl.col("seconds") for kind in kinds}
    begins = windows.select(pl.col("start").alias("at"), active=1, observed=0, **change)
    ends = windows.select(
        pl.col("end").alias("at"), active=-1, observed=0, **{k: -rate for k, rate in change.items()}
    )
    nothing = dict.fromkeys(kinds, pl.lit(0.0))
    comes = seen.select(pl.col("start").alias("at"), active=0, observed=1, **nothing)
    goes = seen.select(pl.col("end").alias("at"), active=0, observed=-1, **nothing)
    frame = (
        pl.concat([begins, ends, comes, goes], how="vertical_relaxed")
        .group_by("at")
        .sum()
        .sort("at")
        .select(
            pl.col("at").alias("start"),
            pl.col("at").shift(-1).alias("end"),
            pl.col("observed").cum_sum().cast(pl.Int64),
            (pl.col("active").cum_sum() > 0).alias("active"),
            # Adding and taking away leaves rounding errors: none where nothing is left.
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
    """Cut windows of a fixed grid to what was observed of them.

    A trace that begins in the middle of a window tells nothing of the time before.

    Args:
        windows: columns of `WINDOW` and a count per kind; ``seconds`` are replaced.
        observed: columns of `OBSERVED`.
        kinds: the columns of counts.

    Returns:
        The windows that some interval touches, with ``start`` and ``end`` moved inside and
        ``seconds`` counted.
    """
    begin = pl.max_horizontal("start", "seen_from")
    stop = pl.min_horizontal("end", "seen_until")
    seen = observed.rename({"start": "seen_from", "end": "seen_until"})
    return (
        windows.drop("seconds")
        .join(seen, on="source")
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
    """Cut steps at [start, end): rates are constant in a step, so its part has the same ones."""
    frame = steps.frame.filter(pl.col("end") > start, pl.col("start") < end).with_columns(
        pl.max_horizontal("start", pl.lit(start, UTC_US)),
        pl.min_horizontal("end", pl.lit(end, UTC_US)),
    )
    return replace(steps, frame=frame)


def coarsened(steps: Steps, at_most: int) -> Steps:
    """Join neighbouring steps until there are about `at_most`; rates become means over time.

    Steps are joined whole, never across a gap, and those observed never with a mean over a gap.
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
    """Join intervals of one source that overlap or meet; those of no length are dropped.

    Takes and returns the columns of `OBSERVED`, by source and time.
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
