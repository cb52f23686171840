"""Impact: who made others wait at a server, and how long; and when a server was slow at all.

A job may be busy without doing harm. What counts here is others' waiting: how much longer their
RPCs took, queue included, than the same RPCs take where the server is calm.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from datetime import datetime

WINDOW = timedelta(seconds=10)
WINDOWS = {  # what the functions below take; a key may recur, rows add up
    "start": pl.Datetime("us", "UTC"),
    "server": pl.Int64(),
    "service": pl.Int64(),
    "opcode": pl.Int16(),
    "principal": pl.String(),
    "timed": pl.Int64(),  # RPCs whose times are known
    "service_us_sum": pl.Int64(),
    "total_us_sum": pl.Int64(),  # arrival to end, queue included
}
BASELINES = {
    "server": pl.Int64(),
    "service": pl.Int64(),
    "opcode": pl.Int16(),
    "baseline_us": pl.Float64(),  # from arrival to end, of one RPC where the server is calm
}
TIMES = {
    "server": pl.Int64(),
    "start": pl.Datetime("us", "UTC"),
    "took_us": pl.Float64(),  # from arrival to end, all RPCs whose baseline is known
    "usual_us": pl.Float64(),  # what as many of the same kinds usually take
}
FEWEST_WINDOWS = 1_000  # fewer say nothing of how long an RPC takes

_KIND = ("server", "service", "opcode")
_MOMENT = ("start", "server", "service")
_US_PER_S = 1e6


@dataclass(frozen=True)
class Impact:
    """Who carried the load of some windows, who did harm and who suffered.

    `principals` has a row each, most harmful first, with the columns principal, rpcs (timed ones),
    service_s (what the server worked for it), share (of all service time), impact_s (others'
    waiting because of it) and suffered_s (its own). `known_share` is the part of the timed RPCs
    whose baseline is known: only these can be late.
    """

    principals: pl.DataFrame
    known_share: float


def by_window(windows: pl.DataFrame, baseline: pl.DataFrame) -> pl.DataFrame:
    """Share others' waiting out among those who kept the server busy meanwhile.

    In each window and service, a principal answers for its share of the service time of
    ``max(0, sum over opcodes of (others' total time - others' RPCs x baseline))``, where others
    are those who kept the service less busy than itself: else whoever shares a server with a storm
    would answer for what the storm waits for itself.

    Args:
        windows: columns of `WINDOWS`.
        baseline: columns of `BASELINES`.

    Returns:
        A row for each principal in each window and service: start, server, service, principal,
        timed (RPCs), and in microseconds service_us_sum, work_us (that of all), others_us (how
        long others' RPCs took whose baseline is known), others_usual_us (how long they usually do),
        impact_us (others' waiting because of it) and suffered_us (its own).

    Source: docs/metrics.md, "Impact".
    """
    is_known = pl.col("baseline_us").is_not_null()
    judged = windows.join(baseline, on=_KIND, how="left").with_columns(
        took_us=pl.when(is_known).then(pl.col("total_us_sum").cast(pl.Float64)),
        usual_us=pl.col("timed") * pl.col("baseline_us"),
    )
    part = (pl.col("service_us_sum") / pl.col("work_us")).fill_nan(0)
    late_us = pl.col("others_us") - pl.col("others_usual_us")
    return (
        judged.group_by(*_MOMENT, "principal")
        .agg(pl.sum("timed", "service_us_sum", "took_us", "usual_us"))
        .sort(*_MOMENT, "service_us_sum", "principal")
        .with_columns(
            work_us=pl.sum("service_us_sum").over(_MOMENT),
            others_us=_before("took_us"),
            others_usual_us=_before("usual_us"),
        )
        # (equals have the sum of the first of them)
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
    """Add up those before each in a window, less busy ones first."""
    return pl.col(name).cum_sum().over(_MOMENT) - pl.col(name)


def impact(windows: pl.DataFrame, baseline: pl.DataFrame) -> Impact:
    """Add up who carried the load of all windows, who did harm and who suffered.

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
    """Return how long RPCs of each kind took, beside what is usual; those that waited most first.

    Args:
        windows: columns of `WINDOWS`.
        baseline: columns of `BASELINES`.

    Returns:
        Columns server, service, opcode, rpcs (timed ones), mean_us, usual_us (null: not known).
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
    factor: float  # times as long as usual, at its worst window
    waited_s: float  # beyond the usual, all RPCs together


@dataclass(frozen=True)
class Leaving:
    """When a server has left its baseline, and when it is back.

    It has left where RPCs take `leaves` times as long as usual and is back below `returns` times;
    pauses shorter than `pause` are part of it, intervals shorter than `shortest` are none.
    """

    leaves: float = 3.0
    returns: float = 1.5
    pause: timedelta = timedelta(minutes=2)
    shortest: timedelta = timedelta(seconds=30)


def slow_intervals(times: pl.DataFrame, leaving: Leaving | None = None) -> list[Slowdown]:
    """Find the intervals in which a server's latency left its baseline, worst first.

    A window's factor is the time that its RPCs took over the time that as many of the same kinds
    usually take: a change of the mix of RPCs is no slowness.

    Args:
        times: columns of `TIMES`; windows that are not slow may be missing.
        leaving: when an interval begins and ends.

    Source: docs/metrics.md, "Slow intervals".
    """
    limits = leaving or Leaving()
    factors = (
        times.filter(pl.col("usual_us") > 0)
        .with_columns(factor=pl.col("took_us") / pl.col("usual_us"))
        .filter(pl.col("factor") >= limits.returns)
        .sort("server", "start")
    )
    pause = pl.col("start").diff().over("server") > WINDOW + limits.pause
    found = (
        factors.with_columns(interval=pause.fill_null(value=True).cum_sum())
        .group_by("server", "interval")
        .agg(
            start=pl.min("start"),
            end=pl.max("start") + WINDOW,
            factor=pl.max("factor"),
            waited_s=(pl.col("took_us") - pl.col("usual_us")).sum() / _US_PER_S,
        )
        .filter(
            pl.col("factor") >= limits.leaves,
            pl.col("end") - pl.col("start") >= limits.shortest,
        )
        .sort("waited_s", "server", "start", descending=[True, False, False])
    )
    return [Slowdown(**row) for row in found.drop("interval").iter_rows(named=True)]
