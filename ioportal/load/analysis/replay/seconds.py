"""A queue by second, with and without a group: the figures to recompute its harm by hand."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ioportal.load.analysis.replay.server import SLOW_TIMES

if TYPE_CHECKING:
    from datetime import datetime

    from ioportal.load.analysis.replay.demand import Demand
    from ioportal.load.analysis.replay.spared_waiting import Harm, Queue

SECONDS = {  # by second; work: usual time of requests
    "start": pl.Datetime("us", "UTC"),
    "group_work_s": pl.Float64(),  # that arrives, of the group
    "rest_work_s": pl.Float64(),  # of senders whose waiting is no harm of the group
    "others_work_s": pl.Float64(),
    "blocking_work_s": pl.Float64(),  # of other groups that block the server, too: left out
    "others_requests": pl.Float64(),  # that arrived, as measured
    "group_requests": pl.Float64(),
    "capacity_s": pl.Float64(),  # work that the server does
    "measured_wait_s": pl.Float64(),  # of others' requests that arrived
    "wait_s": pl.Float64(),  # of one request, by the replay, with the group
    "wait_without_s": pl.Float64(),  # without it
    "impact_s": pl.Float64(),  # of others' waiting: the harm, of users' requests
    "outside_s": pl.Float64(),  # the same of requests that are of no user
}


def by_second(demand: Demand, harm: Harm, capacity_s: float) -> pl.DataFrame:
    """Return a queue with and without a group: columns of `SECONDS`.

    Args:
        demand: of a server, by second.
        harm: the harm of the group in the queue.
        capacity_s: work that the server does in a second.
    """
    curves = harm.curves
    steps = range(curves.queue.first, curves.queue.end)
    work = dict(zip(("group", "rest", "others", "blocking"), curves.arriving_s.T, strict=True))
    spared_s = np.concatenate([np.zeros(curves.since), harm.spared_s])
    columns: dict[str, Any] = {
        "start": [time_of(demand, step) for step in steps],
        **{f"{who}_work_s": amounts for who, amounts in work.items()},
        "others_requests": curves.requests[:, 2],
        "group_requests": curves.requests[:, 0],
        "capacity_s": np.full(len(steps), capacity_s),
        "measured_wait_s": curves.measured_s,
        "wait_s": curves.one_s[0],
        "wait_without_s": curves.one_s[1],
        "impact_s": spared_s * harm.counted_share,
        "outside_s": spared_s * (1 - harm.counted_share),
    }
    return pl.DataFrame({name: columns[name] for name in SECONDS}, SECONDS)


def drained(demand: Demand, queue: Queue) -> int:
    """Return the step after the last in which a request waited, as measured.

    By the replay, the backlog of a queue may last some seconds longer.
    """
    steps = slice(queue.first, queue.end)
    waited_s, work_s, requests = (
        table[steps].sum(axis=1) for table in (demand.waited_s, demand.work_s, demand.requests)
    )
    slow = np.flatnonzero(waited_s > SLOW_TIMES * work_s)
    if not len(slow):
        return queue.end
    until = slow + 0.5 + waited_s[slow] / requests[slow] / demand.width_s
    return min(queue.end, queue.first + int(np.ceil(until.max())))


def time_of(demand: Demand, step: int) -> datetime:
    """Return the start of a step."""
    return demand.start + step * timedelta(seconds=demand.width_s)
