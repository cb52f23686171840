"""Impact of jobs and groups of jobs on others.

A busy job need not slow down others. Impact is the extra wait of others because of a group of
jobs, by a replay of each queue (`load.analysis.replay`). Here are the tables of an analysis: who
waited above usual, that is, beyond the baseline of the same RPCs on a server with little load.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence
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
# An application is a user and an application name, a campaign a project and such a name.
GROUPS = ("user", "project", "application", "campaign")
# The groups of each principal in a job; null: none. Principals outside jobs may be missing.
# Principals of one source may be one user under several names; null: they are not.
MEMBERS = {
    "principal": pl.String(),
    **dict.fromkeys(GROUPS, pl.String()),
    "source": pl.String(),
    "is_claim": pl.Boolean(),  # other owners' jobs may have sent it: no load of a group
}
BASELINES = {
    "server": pl.Int64(),
    "service": pl.Int64(),
    "opcode": pl.Int16(),
    "baseline_us": pl.Float64(),  # arrival to end of an RPC on a server with little load
}
REQUESTS = {  # of one principal, of one kind, in a slow interval or outside
    "server": pl.Int64(),
    "service": pl.Int64(),
    "opcode": pl.Int16(),
    "slow": pl.Datetime("us", "UTC"),  # start of the slow interval of the server; null: outside
    "principal": pl.String(),
    "rpcs": pl.Int64(),  # timed
    "total_us": pl.Int64(),
    "late_us": pl.Float64(),  # wait beyond the usual
}
MIN_BASELINE_WINDOWS = 1_000  # of a known baseline
MAX_WAIT = timedelta(minutes=2)  # work up to this long before a window delays its RPCs
US_PER_S = 1e6

_KIND = ("server", "service", "opcode")
_MOMENT = ("server", "service", "start")


@dataclass(frozen=True)
class Slowdown:
    """An interval in which a server's RPCs took longer than usual."""

    server: int
    start: datetime
    end: datetime
    factor: float  # time relative to usual, in the worst window
    waited_s: float  # time beyond usual, of all RPCs


@dataclass(frozen=True)
class Impact:
    """Load, impact and waiting of the principals and their groups in some windows.

    Both frames have a row for each, highest impact first: rpcs (timed), service_s (service time),
    share (of all work), impact_s (extra wait that it causes others) and suffered_s (its own
    wait above usual). `principals` has the column principal, `groups` the columns kind (of
    `GROUPS`) and key. `known_share` is the share of timed RPCs with a known baseline, `waited_s`
    the wait above usual of all.
    """

    principals: pl.DataFrame
    groups: pl.DataFrame
    known_share: float
    waited_s: float


def impact(
    windows: pl.DataFrame, baseline: pl.DataFrame, members: pl.DataFrame, impacts: pl.DataFrame
) -> Impact:
    """Sum load, impact and waiting of each principal and group over all windows.

    Args:
        windows: columns of `WINDOWS`.
        baseline: columns of `BASELINES`.
        members: columns of `MEMBERS`.
        impacts: the impact of groups: columns kind, key and impact_us.

    Returns:
        The impact of every principal and group; no windows give no rows and a known share of 0.
    """
    timed = int(windows["timed"].sum())
    known = int(windows.join(baseline, on=_KIND, how="semi")["timed"].sum())
    loads = _loads(windows, baseline, members)
    of_groups = impacts.group_by("kind", "key").agg(impact_s=pl.sum("impact_us") / US_PER_S)
    late_us = pl.max_horizontal(pl.col("took_us") - pl.col("usual_us"), 0)
    all_work_us = loads["work_us"].sum()
    frames = {
        kind: loads.drop_nulls(kind)
        .group_by(*_MOMENT, key=kind)
        .agg(pl.sum("timed", "service_us_sum", "work_us", "took_us", "usual_us"))
        .group_by("key")
        .agg(
            rpcs=pl.sum("timed"),
            service_s=pl.sum("service_us_sum") / US_PER_S,
            share=(pl.sum("work_us") / all_work_us).fill_nan(0),
            suffered_s=late_us.sum() / US_PER_S,
        )
        .join(of_groups.filter(kind=kind).drop("kind"), on="key", how="left")
        .with_columns(pl.col("impact_s").fill_null(0))
        .sort("impact_s", "service_s", "key", descending=[True, True, False])
        for kind in ("principal", *GROUPS)
    }
    groups = pl.concat([frames[kind].with_columns(kind=pl.lit(kind)) for kind in GROUPS])
    waited_us = loads.group_by(_MOMENT).agg(pl.sum("took_us", "usual_us")).select(late_us.sum())
    return Impact(
        frames["principal"].rename({"key": "principal"}),
        # Of groups of the same jobs, the user comes first.
        groups.sort(pl.col("impact_s").round(6), descending=True, maintain_order=True),
        known / timed if timed else 0.0,
        waited_us.item() / US_PER_S,
    )


def requests(
    windows: pl.DataFrame, baseline: pl.DataFrame, slow: Sequence[Slowdown]
) -> pl.DataFrame:
    """Return who sent the requests of each kind, and of each slow interval.

    Args:
        windows: columns of `WINDOWS`.
        baseline: columns of `BASELINES`.
        slow: slow intervals; intervals of a server do not overlap.

    Returns:
        Columns of `REQUESTS`.
    """
    intervals = pl.DataFrame(
        [(each.server, each.start, each.end) for each in slow],
        schema={"server": pl.Int64, "slow": WINDOWS["start"], "slow_end": WINDOWS["start"]},
        orient="row",
    )
    late_us = pl.col("total_us_sum") - pl.col("timed") * pl.col("baseline_us")
    return (
        windows.sort("start")
        .join_asof(
            intervals.sort("slow"),
            left_on="start",
            right_on="slow",
            by="server",
            coalesce=False,
            check_sortedness=False,
        )
        .with_columns(slow=pl.when(pl.col("start") < pl.col("slow_end")).then("slow"))
        .join(baseline, on=_KIND, how="left")
        .group_by(*_KIND, "slow", "principal")
        .agg(
            rpcs=pl.sum("timed"),
            total_us=pl.sum("total_us_sum"),
            late_us=late_us.clip(lower_bound=0).sum(),
        )
        .filter(pl.col("rpcs") > 0)
        .select(pl.col(name).cast(kind) for name, kind in REQUESTS.items())
        .sort(*_KIND, "slow", "principal")
    )


def latency(windows: pl.DataFrame, baseline: pl.DataFrame) -> pl.DataFrame:
    """Return actual and usual times of each kind of RPC, longest wait above usual first.

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


def work_us(requests: str, service_us: str) -> pl.Expr:
    """Return the work of requests on an idle server, for rows with baseline_us, server and start.

    It is their baseline. Where that is unknown, it is their service time, divided by how much
    longer than usual the server serves other requests at the time.

    Args:
        requests: column of the number of requests.
        service_us: column of their service time.
    """
    usual_us = pl.col(requests) * pl.col("baseline_us")
    at_once = ["server", "start"]
    served_us = pl.when(usual_us.is_not_null()).then(service_us).sum().over(at_once)
    slowness = (served_us / usual_us.sum().over(at_once)).fill_nan(1).clip(lower_bound=1)
    return pl.coalesce(usual_us, pl.col(service_us) / slowness)


def _loads(windows: pl.DataFrame, baseline: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    """Return work, times and groups of each principal in each window and service.

    The service time of an RPC includes the time for which it is blocked on locks.
    """
    usual_us = pl.col("timed") * pl.col("baseline_us")
    is_known = pl.col("baseline_us").is_not_null()
    return (
        # A baseline of 0 is unknown: no factor relates to it.
        windows.join(baseline.filter(pl.col("baseline_us") > 0), on=_KIND, how="left")
        .with_columns(
            usual_us=usual_us.fill_null(0),
            took_us=pl.when(is_known).then(pl.col("total_us_sum").cast(pl.Float64)).otherwise(0),
            work_us=work_us("timed", "service_us_sum"),
        )
        .group_by(*_MOMENT, "principal")
        .agg(pl.sum("timed", "service_us_sum", "work_us", "took_us", "usual_us"))
        .join(members, on="principal", how="left")
    )
