"""Impact of principals and groups of jobs by replay, in windows of 10 s and by queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from ioportal.load.analysis.replay.seconds import drained, time_of
from ioportal.load.analysis.replay.spared_waiting import MOST_UNTRACED, Group, by_queue
from ioportal.load.analysis.waiting import WINDOW

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from ioportal.load.analysis.replay.demand import Demand
    from ioportal.load.analysis.replay.spared_waiting import Harm, Queue

DEFINITION = (
    "The impact of a group of jobs is how many seconds less the requests of other users would have "
    "waited at a metadata server without the group, queue by queue. "
    "The requests of a queue are served again by a model of the server: once with all senders, and "
    "once without the group. "
    "A group with little of the queue's work has no impact, and where requests or capacity are "
    "unknown, impact is unknown."
)
# Of the interval in texts: most accused groups of simulated sets are in it (docs/performance.md).
PRECISION = 2.0
PRINCIPAL = "principal"  # the kind of a single job, process or host
MIN_MINUTE_SHARE = 0.05  # of the work of a minute: groups with less are not evaluated
IMPACTS = {  # in microseconds
    "kind": pl.String(),
    "key": pl.String(),
    "start": pl.Datetime("us", "UTC"),
    **dict.fromkeys(
        ("impact_us", "outside_us", "work_us", "all_work_us", "others_us", "others_usual_us"),
        pl.Float64(),
    ),
}
QUEUES = {  # a row for each group with impact in a queue; without one, a row of nulls
    "start": pl.Datetime("us", "UTC"),
    "end": pl.Datetime("us", "UTC"),  # when the last request had waited
    "waited_s": pl.Float64(),  # measured, of all requests in the queue
    "users_waited_s": pl.Float64(),  # the part of it that is of users' requests
    "kind": pl.String(),  # as in `IMPACTS`
    "key": pl.String(),
    "share": pl.Float64(),  # of the queue's work
    "impact_s": pl.Float64(),
    "outside_s": pl.Float64(),  # of requests that are of no user
    "others": pl.List(pl.String()),  # the principals whose waiting is in both
}
PARTS = {  # of a queue's principals
    "start": pl.Datetime("us", "UTC"),  # of the queue
    "principal": pl.String(),
    "work_s": pl.Float64(),
    "waited_s": pl.Float64(),
}
LEAST_WAITED_S = 1.0  # in a queue: shorter ones are not listed
OWNERS = {  # whose own waiting is no harm of a group
    PRINCIPAL: "user",
    "user": "user",
    "application": "user",
    "project": "project",
    "campaign": "project",
}
_MINUTE_S = 60.0
_US_PER_S = 1e6


class QueueHarms(NamedTuple):
    """A queue, or a part without one, and the harm of groups in it.

    Args:
        queue: its steps.
        harms: kind, key and harm of each group, as in `IMPACTS`.
        is_traced: whether most requests are known; otherwise harm is an estimate.
    """

    queue: Queue
    harms: list[tuple[str, str, Harm]]
    is_traced: bool


def queue_harms(
    demand: Demand,
    members: pl.DataFrame,
    capacity_s: float,
    until: datetime | None = None,
    untraced: Sequence[tuple[datetime, datetime]] = (),
    *,
    untimed: Sequence[tuple[datetime, datetime]] = (),
    earlier: pl.DataFrame | None = None,
) -> list[QueueHarms]:
    """Return how much less others would have waited without each principal and group, by queue.

    Args:
        demand: of one server; its senders are principals.
        members: columns of `load.analysis.waiting.MEMBERS`.
        capacity_s: work that the server does in a second, in seconds of an idle server.
        until: end of the known requests; None: all are known. See `harms`.
        untraced: disjoint intervals whose requests are unknown.
        untimed: disjoint intervals with requests whose times are unknown. The harm in queues with
            more than a short part in them is unknown.
        earlier: columns sender and work_s, in a step before a queue whose begin is not in the
            demand; None: unknown.

    Source: docs/metrics.md, "Impact".
    """
    of_sender = pl.DataFrame({PRINCIPAL: demand.senders}).join(
        members, on=PRINCIPAL, how="left", maintain_order="left"
    )
    party = of_sender.select(pl.coalesce("user", "source", PRINCIPAL)).to_series()
    found = list(_groups(demand, of_sender))
    known = None if until is None else int((until - demand.start).total_seconds() / demand.width_s)
    groups = [group for _, _, group in found]
    earlier_s = None
    if earlier is not None:
        by_sender = of_sender.join(earlier, left_on=PRINCIPAL, right_on="sender", how="left")
        earlier_s = by_sender["work_s"].fill_null(0).to_numpy()
    return [
        QueueHarms(
            queue,
            [(*found[harm.group][:2], harm) for harm in harms]
            if _share_in(untimed, demand, queue) <= MOST_UNTRACED
            else [],
            is_traced=_share_in(untraced, demand, queue) <= MOST_UNTRACED,
        )
        for queue, harms in by_queue(
            demand, groups, party.to_list(), capacity_s, known, earlier_s=earlier_s
        )
    ]


def _share_in(
    intervals: Sequence[tuple[datetime, datetime]], demand: Demand, queue: Queue
) -> float:
    """Return the part of a queue that is in disjoint intervals."""
    first, end = (time_of(demand, step) for step in (queue.first, queue.end))
    parts = [min(until, end) - max(since, first) for since, until in intervals]
    return sum(max(part / (end - first), 0.0) for part in parts)


def by_window(demand: Demand, parts: list[QueueHarms]) -> pl.DataFrame:
    """Return the harm of `queue_harms` by window.

    Returns:
        A row for each group in each window of a queue: kind ("principal" or one of `GROUPS`), key,
        start, and in microseconds impact_us, outside_us (of requests that are of no user), work_us,
        all_work_us, others_us (time of others' requests) and others_usual_us (on an idle server).
    """
    frames = [_rows(demand, harm, kind, key) for part in parts for kind, key, harm in part.harms]
    return pl.concat(frames) if frames else pl.DataFrame(schema=IMPACTS)


def in_queues(
    demand: Demand, parts: list[QueueHarms], least_waited_s: float = LEAST_WAITED_S
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the groups and the principals of queues: columns of `QUEUES` and `PARTS`."""
    groups: list[tuple[object, ...]] = []
    principals = [pl.DataFrame(schema=PARTS)]
    for queue, harms, _ in parts:
        steps = slice(queue.first, queue.end)
        waited_s = demand.waited_s[steps].sum(axis=0)
        if not queue.has_backlog or waited_s.sum() < least_waited_s:
            continue
        start, end = time_of(demand, queue.first), time_of(demand, drained(demand, queue))
        whole = start, end, waited_s.sum(), demand.counted_s[steps].sum()
        for kind, key, harm in harms:
            spared_s = harm.spared_s.sum()
            impact_s = spared_s * harm.counted_share
            share = harm.work_s / harm.all_work_s
            others = [demand.senders[sender] for sender in harm.curves.others]
            groups.append((*whole, kind, key, share, impact_s, spared_s - impact_s, others))
        if not harms:
            groups.append((*whole, *[None] * 6))
        amounts = {"work_s": demand.work_s[steps].sum(axis=0), "waited_s": waited_s}
        rows = pl.DataFrame({PRINCIPAL: demand.senders, **amounts})
        principals.append(rows.select(pl.lit(start).alias("start"), *list(PARTS)[1:]))
    return pl.DataFrame(groups, QUEUES, orient="row"), pl.concat(principals)


def _groups(demand: Demand, of_sender: pl.DataFrame) -> Iterator[tuple[str, str, Group]]:
    """Yield kind, key and senders of the groups with a notable part of the work of a minute."""
    minute = max(round(_MINUTE_S / demand.width_s), 1)
    begins = range(0, len(demand.work_s), minute)
    work_s = np.add.reduceat(demand.work_s, begins, axis=0)
    least_s = MIN_MINUTE_SHARE * work_s.sum(axis=1)
    for kind, owner in OWNERS.items():
        owners = of_sender[owner].to_numpy()
        # What only a job id claims is no load of a group.
        is_member = ~pl.col("is_claim").fill_null(value=False) | pl.lit(kind == PRINCIPAL)
        of_group = of_sender.select(pl.when(is_member).then(kind)).to_series()
        known = np.flatnonzero(of_group.is_not_null())
        keys, number = np.unique(of_group.to_numpy()[known].astype(str), return_inverse=True)
        of_keys = np.array([np.bincount(number, row[known], len(keys)) for row in work_s])
        for heavy in np.flatnonzero((of_keys > least_s[:, None]).any(axis=0)):
            which = np.zeros(len(owners), dtype=bool)
            which[known[number == heavy]] = True
            mine = owners[which][0]
            own = which if mine is None else owners == mine
            yield kind, str(keys[heavy]), Group(which, own | which)


def _rows(demand: Demand, harm: Harm, kind: str, key: str) -> pl.DataFrame:
    steps = np.arange(harm.queue.first, harm.queue.end)
    width_us = round(demand.width_s * _US_PER_S)
    part = harm.spared_s / harm.spared_s.sum()
    seconds = {
        "impact_us": harm.spared_s * harm.counted_share,
        "outside_us": harm.spared_s * (1 - harm.counted_share),
        "work_us": harm.work_s * part,
        "all_work_us": harm.all_work_s * part,
        "others_us": harm.others_s,
        "others_usual_us": harm.others_usual_s,
    }
    return (
        pl.DataFrame({name: amounts * _US_PER_S for name, amounts in seconds.items()})
        .with_columns(
            start=(
                pl.lit(demand.start) + pl.duration(microseconds=pl.lit(steps * width_us))
            ).dt.truncate(f"{WINDOW.seconds}s")
        )
        .group_by("start")
        .agg(pl.sum(*seconds))
        .select(
            pl.lit(value).alias(name) if (value := {"kind": kind, "key": key}.get(name)) else name
            for name in IMPACTS
        )
    )
