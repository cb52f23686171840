"""Estimated impact, without traces: from the times of a server's requests and counted operations.

Between two reads the arrival times of requests are unknown, so no queue can be served again.
Only the waiting is known, and who sent more than usual. Windows are estimated: values are constant
between two reads, all requests of a service take equally long, and each principal sends requests in
proportion to its load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ioportal.jobs.analysis.quality import CONTRADICTION
from ioportal.load.analysis.replay.impact_by_group import IMPACTS, OWNERS
from ioportal.load.analysis.slowness import TIMES
from ioportal.load.analysis.waiting import BASELINES, WINDOW, WINDOWS

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

UTC_US = pl.Datetime("us", "UTC")
LOADS = {  # of intervals between two reads; rows with the same key are summed
    "start": UTC_US,
    "end": UTC_US,
    "principal": pl.String(),
    "counted_by": pl.String(),  # see `by_nodes`
    "operations": pl.Float64(),
    "time_us": pl.Float64(),  # of the operations on the server; null: unknown
}
WAITS = {  # of intervals between two reads of a server's statistics, without overlap
    "start": UTC_US,
    "end": UTC_US,
    "service": pl.Int64(),
    "requests": pl.Float64(),
    "handled_us": pl.Float64(),  # time in handlers
    "took_us": pl.Float64(),  # arrival to end
}
MIN_CALM_INTERVALS = 20  # of a known baseline
COSTLIEST = 2  # mean time of operations: a principal's / the busiest principal's
CAUSE_SHARE = 0.4  # of the work above usual: an owner with less is not known to be the cause
PART_SHARE = 0.2  # of the work above usual: a group with less is a small part of the cause
# Of the interval in texts: of simulated sets, 60 % are within half of it (docs/performance.md).
PRECISION = 4.0
CALM_WINDOWS = 12  # before a slow interval: they show the usual work of each principal

_KIND = ("server", "service", "opcode")
_AMOUNTS = ("operations", "time_us")
_OF_OTHERS = ("impact_us", "outside_us", "others_us", "others_usual_us")


def baseline(server: int, waits: pl.DataFrame) -> pl.DataFrame:
    """Return the mean time of requests of each service with little load: columns of `BASELINES`.

    It is the median of the intervals of below-median load. Services with less than
    `MIN_CALM_INTERVALS` of them are unknown.

    Args:
        server: the server of the waits.
        waits: columns of `WAITS`.
    """
    length_us = (pl.col("end") - pl.col("start")).dt.total_microseconds()
    rates = waits.filter(pl.col("requests") > 0).with_columns(rate=pl.col("requests") / length_us)
    calm = rates.filter(pl.col("rate") <= pl.col("rate").median().over("service"))
    usual = calm.group_by("service").agg(
        baseline_us=(pl.col("took_us") / pl.col("requests")).median(), intervals=pl.len()
    )
    known = usual.filter(pl.col("intervals") >= MIN_CALM_INTERVALS)
    return _with_kind(known, server).select(*BASELINES)


def times(
    waits: pl.DataFrame, usual: pl.DataFrame, span: tuple[datetime, datetime]
) -> pl.DataFrame:
    """Return the times of requests in each 10 s of a span: columns of `TIMES`.

    Args:
        waits: columns of `WAITS`.
        usual: columns of `BASELINES`, of one server.
        span: start and end, at boundaries of windows.
    """
    return (
        _spread(waits, ("requests", "took_us"), span)
        .join(usual, on="service")
        .group_by("server", start="window")
        .agg(pl.sum("took_us"), usual_us=(pl.col("requests") * pl.col("baseline_us")).sum())
        .select(*TIMES)
    )


def by_nodes(
    loads: pl.DataFrame,
    observed: Sequence[tuple[datetime, datetime]],
    *,
    unattributed: str,
    claim: pl.Expr,
) -> pl.DataFrame:
    """Return the loads of jobs that their nodes confirm: columns of `LOADS`.

    Any process can send the id of another job. Operations with a job's id that are more than
    `CONTRADICTION` times the operations of its nodes, and of clients that may send them, are
    another's: only as many as its nodes sent are the job's. Operations of nodes that far exceed the
    operations with their job's id are the job's, too.

    Args:
        loads: counted by job (with its id), claim (with its id, which jobs of other owners on its
            nodes may have sent, too), process (with another id), host, node (of a job), new
            node (its operations until its first poll, or of nodes that may be the job's) or unclear
            (clients that may send operations of any job).
        observed: intervals in which nodes were counted.
        unattributed: the principal of the operations of others.
        claim: the principal of claims that the job's own nodes do not prove, by the job's.
    """
    counted_by, operations = pl.col("counted_by"), pl.col("operations")
    processes, hosts = (loads.filter(counted_by == kind) for kind in ("process", "host"))
    is_claim = counted_by == "claim"
    with_ids = loads.filter(is_claim | (counted_by == "job"))
    if not observed:
        named = with_ids.with_columns(pl.when(is_claim).then(claim).otherwise("principal"))
        return pl.concat([named, _by_sender(processes, hosts)])
    during = pl.concat(_spread(loads, ("operations",), span) for span in observed)
    unclear = during.filter(counted_by == "unclear")["operations"].sum()
    of_jobs = (
        during.group_by("principal")
        .agg(
            of_claims=operations.filter(is_claim).sum(),
            claimed=operations.filter(is_claim | (counted_by == "job")).sum(),
            sent=operations.filter(counted_by == "node").sum(),
            sent_at_most=operations.filter(counted_by.is_in(["node", "new node"])).sum(),
        )
        .select(
            "principal",
            confirmed=pl.when(
                pl.col("claimed") > CONTRADICTION * (pl.col("sent_at_most") + unclear)
            )
            .then(pl.col("sent_at_most") / pl.col("claimed"))
            .otherwise(1.0),
            # What the nodes sent proves the job's other operations first.
            proven=pl.when(pl.col("of_claims") > 0)
            .then((pl.col("sent") - pl.col("claimed")) / pl.col("of_claims") + 1)
            .otherwise(0.0)
            .clip(0, 1),
            unclaimed=pl.when(pl.col("sent") > CONTRADICTION * pl.col("claimed"))
            .then(1 - pl.col("claimed") / pl.col("sent"))
            .otherwise(0.0),
        )
    )
    jobs = with_ids.join(of_jobs, on="principal", how="left")
    confirmed = pl.col("confirmed").fill_null(1.0)
    by_own_nodes = pl.min_horizontal(confirmed, pl.col("proven").fill_null(0.0))
    own = pl.when(is_claim).then(by_own_nodes).otherwise(confirmed)
    claims = _part(jobs, confirmed - own).with_columns(claim)
    nodes = loads.filter(counted_by == "node").join(of_jobs, on="principal")
    not_sent = _part(jobs, 1 - confirmed).with_columns(principal=pl.lit(unattributed))
    senders = pl.concat([hosts, _part(nodes, pl.col("unclaimed"))])
    return pl.concat(
        [_part(jobs, own), claims, _by_sender(pl.concat([processes, not_sent]), senders)]
    )


def _by_sender(processes: pl.DataFrame, senders: pl.DataFrame) -> pl.DataFrame:
    """Return the loads of processes, as far as possible by the client that sent them.

    Exports count the operations of clients, job_stats count them again by process, often in shorter
    intervals and with the times of busy seconds. In each interval of the exports, the processes'
    operations are attributed to the senders; the excess of either remains.

    Args:
        processes: columns of `LOADS`.
        senders: columns of `LOADS`; the intervals of a server's targets may overlap.
    """
    rows = pl.concat([processes, senders])
    if processes.is_empty() or senders.is_empty():
        return rows
    every = f"{WINDOW.seconds}s"
    span = rows.select(pl.min("start").dt.truncate(every), pl.max("end").dt.offset_by(every)).row(0)
    done = _spread(processes, _AMOUNTS, span)
    sent = _spread(senders, _AMOUNTS, span)
    time = pl.col("time_us")
    by_window = done.group_by("window").agg(
        pl.sum("operations"), pl.when(time.is_not_null().all()).then(time.sum())
    )
    interval = ("start", "end")
    totals = (
        sent.group_by(*interval, "window")
        .agg(sent=pl.sum("operations"))
        .join(by_window, on="window", how="left")
        .with_columns(covered=_overlap() / WINDOW)
        .with_columns(
            sent=pl.sum("sent").over(interval),
            done=(pl.col("operations").fill_null(0) * pl.col("covered")).sum().over(interval),
        )
        .with_columns(
            taken=pl.col("covered") * (pl.col("sent") / pl.col("done")).clip(upper_bound=1)
        )
    )
    attributed = (
        sent.group_by(*interval, "principal", "counted_by")
        .agg(own=pl.sum("operations"))
        .join(totals.drop_nulls("operations"), on=interval)
    )
    left = sent.join(totals, on=[*interval, "window"])
    taken = totals.group_by("window").agg(pl.sum("taken"))
    rest = done.join(taken, on="window", how="left").with_columns(pl.col("taken").fill_null(0))
    parts = (
        (attributed, pl.col("taken") * pl.col("own") / pl.col("sent")),
        (left, (1 - pl.col("done") / pl.col("sent")).clip(lower_bound=0)),
        (rest, (1 - pl.col("taken")).clip(lower_bound=0)),
    )
    in_window = {"start": pl.col("window"), "end": pl.col("window") + WINDOW}
    return pl.concat(_part(rows.with_columns(**in_window), share) for rows, share in parts)


def _part(loads: pl.DataFrame, share: pl.Expr) -> pl.DataFrame:
    return (
        loads.with_columns(pl.col(_AMOUNTS) * share).filter(pl.col("operations") > 0).select(*LOADS)
    )


def windows(
    server: int, waits: pl.DataFrame, loads: pl.DataFrame, span: tuple[datetime, datetime]
) -> pl.DataFrame:
    """Return estimated windows in a span: columns of `WINDOWS`, with fractions of requests.

    Args:
        server: the server of the waits.
        waits: columns of `WAITS`.
        loads: columns of `LOADS`. Loads and waits may have different intervals.
        span: start and end, at boundaries of windows.

    Source: docs/metrics.md, "Impact".
    """
    requests = _spread(waits, ("requests", "handled_us", "took_us"), span)
    parts = {
        "timed": "requests",
        "service_us_sum": "handled_us",
        "total_us_sum": "took_us",
    }
    rows = (
        _shares(_spread(loads, _AMOUNTS, span))
        .join(requests, on="window")
        .select(
            "service",
            "principal",
            start="window",
            **{name: pl.col("share") * pl.col(amount) for name, amount in parts.items()},
        )
    )
    return _with_kind(rows, server).select(*WINDOWS)


def by_window(
    windows: pl.DataFrame, usual: pl.DataFrame, members: pl.DataFrame, calm: Collection[datetime]
) -> pl.DataFrame:
    """Estimate how much less others would have waited without each principal and each group.

    The *excess* of a principal is its work above its level in calm windows. If all excess of a
    slow window arrives together, the waiting is in proportion to its square. So without a group
    that sent the share s of the excess, others would have waited ``1 - (1 - s)^2`` less. A group
    with less than `PART_SHARE` has no impact, nor a group whose owner has less than `CAUSE_SHARE`:
    it is not known to be the cause.

    Args:
        windows: columns of `WINDOWS`, of one server: slow windows and calm ones.
        usual: columns of `BASELINES`.
        members: columns of `MEMBERS`.
        calm: starts of the calm windows.

    Returns:
        Columns of `replay.impact_by_group.IMPACTS`, of slow windows in which a group is the cause.

    Source: docs/metrics.md, "Impact".
    """
    slow = _excesses(windows, usual, calm).join(members, on="principal", how="left")
    is_of_user = pl.col("user").is_not_null()
    late_us = (pl.col("took_us") - pl.col("work_us")).clip(lower_bound=0)
    slow = slow.with_columns(
        all_work_us=pl.sum("work_us").over("start"),
        all_excess_us=pl.sum("excess_us").over("start"),
        others_us=pl.when(is_of_user).then("took_us").otherwise(0),
        others_usual_us=pl.when(is_of_user).then("work_us").otherwise(0),
        impact_us=pl.when(is_of_user).then(late_us).otherwise(0),
        outside_us=pl.when(is_of_user).then(0).otherwise(late_us),
    ).with_columns(pl.sum(*_OF_OTHERS).over("start").name.suffix("_all"))
    return pl.concat(_of_groups(slow, kind, owner) for kind, owner in OWNERS.items())


def _excesses(
    windows: pl.DataFrame, usual: pl.DataFrame, calm: Collection[datetime]
) -> pl.DataFrame:
    """Return work, time and excess of each principal in each slow window."""
    work_us = pl.col("timed") * pl.col("baseline_us")
    loads = (
        windows.join(usual, on=_KIND)
        .group_by("start", "principal")
        .agg(work_us=work_us.sum(), took_us=pl.sum("total_us_sum").cast(pl.Float64))
    )
    is_calm = pl.col("start").is_in(list(calm))
    before = loads.filter(is_calm)
    levels = before.group_by("principal").agg(
        level_us=pl.sum("work_us") / max(before["start"].n_unique(), 1)
    )
    above_us = pl.col("work_us") - pl.col("level_us").fill_null(0)
    return (
        loads.filter(~is_calm)
        .join(levels, on="principal", how="left")
        .with_columns(excess_us=above_us.clip(lower_bound=0))
    )


def _of_groups(slow: pl.DataFrame, kind: str, owner: str) -> pl.DataFrame:
    """Return the impact of the groups of a kind; an owner's own waiting does not count."""
    parties = slow.with_columns(party=pl.coalesce(owner, "source", "principal"))
    is_proven = ~pl.col("is_claim").fill_null(value=False)
    own = parties.group_by("start", "party").agg(
        pl.sum(*_OF_OTHERS), owned_us=pl.col("excess_us").filter(is_proven).sum()
    )
    owned_share = pl.col("owned_us") / pl.col("all_excess_us")
    share = pl.col("excess_us") / pl.col("all_excess_us")
    spared = 1 - (1 - share) ** 2
    return (
        parties.drop_nulls(kind)
        .filter(is_proven)
        .group_by("start", "party", key=kind)
        .agg(
            pl.sum("work_us", "excess_us"),
            pl.first("all_work_us", "all_excess_us", *(f"{name}_all" for name in _OF_OTHERS)),
        )
        .join(own, on=["start", "party"])
        .filter(owned_share >= CAUSE_SHARE, share >= PART_SHARE)
        .with_columns(pl.col(f"{name}_all") - pl.col(name) for name in _OF_OTHERS)
        .with_columns(
            **{name: spared * pl.col(f"{name}_all") for name in ("impact_us", "outside_us")},
            **{name: f"{name}_all" for name in ("others_us", "others_usual_us")},
            kind=pl.lit(kind),
        )
        .select(*IMPACTS)
    )


def _with_kind(rows: pl.DataFrame, server: int) -> pl.DataFrame:
    """Add the server and the opcode, which is 0: statistics have no times by opcode."""
    return rows.with_columns(
        pl.lit(0, WINDOWS[name]).alias(name) for name in _KIND if name not in rows.columns
    ).with_columns(server=pl.lit(server, WINDOWS["server"]))


def _spread(
    rows: pl.DataFrame, amounts: Sequence[str], span: tuple[datetime, datetime]
) -> pl.DataFrame:
    """Spread amounts of intervals evenly over 10 s windows of a span: adds the column window."""
    since, until = (pl.lit(moment, UTC_US) for moment in span)
    every = f"{WINDOW.seconds}s"
    first = pl.max_horizontal(pl.col("start").dt.truncate(every), since)
    length = pl.col("end") - pl.col("start")
    part = _overlap().dt.total_microseconds() / length.dt.total_microseconds()
    return (
        rows.filter(pl.col("start") < until, pl.col("end") > since)
        .with_columns(
            window=pl.datetime_ranges(first, pl.min_horizontal("end", until), every, closed="left")
        )
        .explode("window")
        .with_columns(pl.col(amounts) * part)
    )


def _overlap() -> pl.Expr:
    """Return the length of the part of an interval in a window."""
    end = pl.min_horizontal("end", pl.col("window") + WINDOW)
    return end - pl.max_horizontal("start", "window")


def _shares(loads: pl.DataFrame) -> pl.DataFrame:
    """Return each principal's share of the load in each window.

    The load is the time of the operations if it is known for all, otherwise their number. Time
    beyond `COSTLIEST` times the mean of the busiest principal's operations is blocked on locks: it
    is no load.
    """
    operations = pl.col("operations")
    mean_us = pl.col("time_us") / operations
    busiest_us = mean_us.sort_by("operations").last().over("window")
    time = pl.min_horizontal("time_us", COSTLIEST * busiest_us * operations)
    is_timed = (pl.col("time_us").is_not_null().all() & (time.sum() > 0)).over("window")
    return (
        loads.with_columns(load=pl.when(is_timed).then(time).otherwise(operations))
        .group_by("window", "principal")
        .agg(pl.sum("load"))
        .with_columns(share=pl.col("load") / pl.sum("load").over("window"))
        .filter(pl.col("share").is_finite(), pl.col("share") > 0)
    )
