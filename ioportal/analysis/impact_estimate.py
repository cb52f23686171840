"""Estimated impact, without traces: from the times of a server's requests and counted operations.

The definition is that of the measured impact (`ioportal.analysis.impact`). Its windows are
estimated: all requests of an interval take equally long, and each principal sends requests in
proportion to its load.
"""

import polars as pl

from ioportal.analysis.impact import BASELINES, MEMBERS, WINDOWS, impact

UTC_US = pl.Datetime("us", "UTC")
LOADS = {  # rows with the same key are summed
    "start": UTC_US,
    "end": UTC_US,
    "principal": pl.String(),
    "operations": pl.Float64(),
    "time_us": pl.Float64(),  # of the operations on the server; null: unknown
}
WAITS = {  # intervals between two reads of a server's statistics, without overlap
    "start": UTC_US,
    "end": UTC_US,
    "requests": pl.Float64(),
    "took_us": pl.Float64(),  # arrival to end, all requests
    "usual_us": pl.Float64(),  # the same with little load
}

_INTERVAL = ("start", "end")
_HANDLING_US = 50.0  # of a request: weighs the principals' work, which only matters relatively


def estimate(loads: pl.DataFrame, waits: pl.DataFrame) -> pl.DataFrame:
    """Estimate the impact of principals on a server.

    Args:
        loads: columns of `LOADS`. Intervals may differ from those of the waits: the load within an
            interval is constant.
        waits: columns of `WAITS`.

    Returns:
        The columns principal, share (of the load), impact_s (extra waiting of others because of it)
        and suffered_s (its own extra waiting); highest impact first. No excess gives no impact.

    Source: docs/metrics.md, "Impact".
    """
    windows = _windows(loads, waits)
    usual = {"server": [0], "service": [0], "opcode": [0], "baseline_us": [_HANDLING_US]}
    no_groups = pl.DataFrame(schema=MEMBERS)  # each principal is a party
    estimated = impact(windows, pl.DataFrame(usual, schema=BASELINES), no_groups)
    return estimated.principals.select("principal", "share", "impact_s", "suffered_s")


def _windows(loads: pl.DataFrame, waits: pl.DataFrame) -> pl.DataFrame:
    """Return windows in which the requests of all principals take as long as the mean."""
    excess_us = pl.max_horizontal(pl.col("took_us") - pl.col("usual_us"), 0)
    part = pl.col("share") * pl.col("requests")
    return (
        _shares(loads, waits)
        .join(waits.filter(pl.col("requests") > 0), on=_INTERVAL)
        .with_columns(
            pl.lit(0, WINDOWS[name]).alias(name) for name in ("server", "service", "opcode")
        )
        .with_columns(
            timed=part.round().cast(pl.Int64),
            service_us_sum=(part * _HANDLING_US).round().cast(pl.Int64),
            total_us_sum=(pl.col("share") * excess_us).round().cast(pl.Int64),
        )
        .with_columns(
            total_us_sum=pl.col("total_us_sum")
            + (pl.col("timed") * _HANDLING_US).round().cast(pl.Int64)
        )
        .select(*WINDOWS)
    )


def _shares(loads: pl.DataFrame, waits: pl.DataFrame) -> pl.DataFrame:
    """Return each principal's share of the load in each interval of `waits`.

    The load is the time of the operations if it is known for all, otherwise their number.
    """
    overlap = (
        pl.min_horizontal("end", "end_of_load") - pl.max_horizontal("start", "start_of_load")
    ).dt.total_microseconds()
    length = (pl.col("end_of_load") - pl.col("start_of_load")).dt.total_microseconds()
    within = (
        loads.rename({name: f"{name}_of_load" for name in _INTERVAL})
        .join_where(
            waits.select(_INTERVAL),
            pl.col("start_of_load") < pl.col("end"),
            pl.col("end_of_load") > pl.col("start"),
        )
        .with_columns(pl.col("operations", "time_us") * (overlap / length))
    )
    times = pl.col("time_us")
    is_timed = (times.is_not_null().all() & (times.sum() > 0)).over(_INTERVAL)
    return (
        within.with_columns(load=pl.when(is_timed).then("time_us").otherwise("operations"))
        .group_by(*_INTERVAL, "principal")
        .agg(pl.sum("load"))
        .with_columns(share=pl.col("load") / pl.sum("load").over(_INTERVAL))
        .filter(pl.col("share").is_finite(), pl.col("share") > 0)
    )
