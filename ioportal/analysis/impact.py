"""Impact of principals on other users of a server, and slow intervals of a server.

A busy job need not slow down others. Impact is the extra waiting of other users: the time of their
RPCs, queue included, beyond the baseline of the same RPCs on a server with little load.
`ioportal.flags.impact_computation` computes it for slow intervals.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from datetime import datetime

WINDOW = timedelta(seconds=10)
WINDOWS = {  # rows with the same key are summed
    "start": pl.Datetime("us", "UTC"),
    "server": pl.Int64(),
    "service": pl.Int64(),
    "opcode": pl.Int16(),
    "principal": pl.String(),
    "timed": pl.Int64(),  # RPCs with known times
    "service_us_sum": pl.Int64(),
    "total_us_sum": pl.Int64(),  # arrival to end, queue included
}
BASELINES = {
    "server": pl.Int64(),
    "service": pl.Int64(),
    "opcode": pl.Int16(),
    "baseline_us": pl.Float64(),  # arrival to end of an RPC on a server with little load
}
TIMES = {
    "server": pl.Int64(),
    "start": pl.Datetime("us", "UTC"),
    "took_us": pl.Float64(),  # arrival to end, of all RPCs with a known baseline
    "usual_us": pl.Float64(),  # baseline of as many RPCs of the same kinds
}
MIN_BASELINE_WINDOWS = 1_000  # of a known baseline

_KIND = ("server", "service", "opcode")
_MOMENT = ("start", "server", "service")
_US_PER_S = 1e6


@dataclass(frozen=True)
class Impact:
    """Load, impact and waiting of the principals in some windows.

    `principals` has a row for each, highest impact first, with the columns principal, rpcs (timed),
    service_s (service time), share (of all service time), impact_s (extra waiting of others caused
    by it) and suffered_s (its own extra waiting). `known_share` is the share of timed RPCs with a
    known baseline.
    """

    principals: pl.DataFrame
    known_share: float


def by_window(windows: pl.DataFrame, baseline: pl.DataFrame) -> pl.DataFrame:
    """Assign extra waiting to the principals that kept the server busy.

    In each window and service, a principal's impact is its share of the service time times
    ``max(0, sum over opcodes of (others' total time - others' RPCs x baseline))``. *Others* are
    principals with less service time: otherwise a bystander would be assigned the waiting that a
    storm causes for itself.

    Args:
        windows: columns of `WINDOWS`.
        baseline: columns of `BASELINES`.

    Returns:
        A row for each principal in each window and service: start, server, service, principal,
        timed (RPCs), and in microseconds service_us_sum, work_us (service time of all), others_us
        (time of others' RPCs with a known baseline), others_usual_us (their usual time), impact_us
        and suffered_us (its own extra waiting).

    Source: docs/metrics.md, "Impact".
    """
    is_known = pl.col("baseline_us").is_not_null()
    compared = windows.join(baseline, on=_KIND, how="left").with_columns(
        took_us=pl.when(is_known).then(pl.col("total_us_sum").cast(pl.Float64)),
        usual_us=pl.col("timed") * pl.col("baseline_us"),
    )
    part = (pl.col("service_us_sum") / pl.col("work_us")).fill_nan(0)
    late_us = pl.col("others_us") - pl.col("others_usual_us")
    return (
        compared.group_by(*_MOMENT, "principal")
        .agg(pl.sum("timed", "service_us_sum", "took_us", "usual_us"))
        .sort(*_MOMENT, "service_us_sum", "principal")
        .with_columns(
            work_us=pl.sum("service_us_sum").over(_MOMENT),
            others_us=_before("took_us"),
            others_usual_us=_before("usual_us"),
        )
        # Equal service times have equal sums.
        .with_columns(
            pl.first("others_us", "others_usual_us").over(*_MOMENT, "service_us_sum"),
        )
        .with_columns(
            impact_us=part * pl.max_horizontal(late_us, 0),
            suffered_us=pl.max_horizontal(pl.col("took_us") - pl.col("usual_us"), 0),
        )
        .drop("took_us", "usual_us")
    )


def _before(name: str) -> pl.Expr:
    """Sum over the less busy principals of the same window and service."""
    return pl.col(name).cum_sum().over(_MOMENT) - pl.col(name)


def impact(windows: pl.DataFrame, baseline: pl.DataFrame) -> Impact:
    """Sum load, impact and waiting of each principal over all windows.

    Args:
        windows: columns of `WINDOWS`.
        baseline: columns of `BASELINES`.

    Returns:
        The impact of every principal; no windows give no rows and a known share of 0.
    """
    timed = int(windows["timed"].sum())
    known = int(windows.join(baseline, on=_KIND, how="semi")["timed"].sum())
    principals = (
        by_window(windows, baseline)
        .group_by("principal")
        .agg(
            rpcs=pl.sum("timed"),
            service_s=pl.sum("service_us_sum") / _US_PER_S,
            impact_s=pl.sum("impact_us") / _US_PER_S,
            suffered_s=pl.sum("suffered_us") / _US_PER_S,
        )
        .with_columns(share=(pl.col("service_s") / pl.sum("service_s")).fill_nan(0))
        .sort("impact_s", "service_s", "principal", descending=[True, True, False])
    )
    return Impact(principals, known / timed if timed else 0.0)


def latency(windows: pl.DataFrame, baseline: pl.DataFrame) -> pl.DataFrame:
    """Return actual and usual times of each kind of RPC, largest extra waiting first.

    Args:
        windows: columns of `WINDOWS`.
        baseline: columns of `BASELINES`.

    Returns:
        Columns server, service, opcode, rpcs (timed), mean_us, usual_us (null: unknown).
    """
    return (
        windows.group_by(*_KIND)
        .agg(rpcs=pl.sum("timed"), total_us_sum=pl.sum("total_us_sum"))
        .filter(pl.col("rpcs") > 0)
        .join(baseline, on=_KIND, how="left")
        .with_columns(mean_us=pl.col("total_us_sum") / pl.col("rpcs"))
        .with_columns(late_us=pl.col("rpcs") * (pl.col("mean_us") - pl.col("baseline_us")))
        .sort(
            "late_us", "rpcs", *_KIND, descending=[True, True, False, False, False], nulls_last=True
        )
        .select(*_KIND, "rpcs", "mean_us", usual_us="baseline_us")
    )


@dataclass(frozen=True)
class Slowdown:
    """An interval in which a server's RPCs took longer than usual."""

    server: int
    start: datetime
    end: datetime
    factor: float  # time relative to usual, in the worst window
    waited_s: float  # time beyond usual, of all RPCs


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
            waited_s=(pl.col("took_us") - pl.col("usual_us")).sum() / _US_PER_S,
        )
        .filter(
            pl.col("factor") >= bounds.enter,
            pl.col("end") - pl.col("start") >= bounds.min_duration,
        )
        .sort("waited_s", "server", "start", descending=[True, False, False])
    )
    return [Slowdown(**row) for row in intervals.drop("interval").iter_rows(named=True)]
