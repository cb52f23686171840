"""A queue of a traced server by second, with and without each group that caused it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from collectors.tables import UTC_US
from ioportal.load.analysis.replay.impact_by_group import PRINCIPAL, in_queues
from ioportal.load.analysis.replay.seconds import by_second, drained, time_of
from ioportal.load.analysis.replay.server import wished
from ioportal.load.impact import replays
from ioportal.telemetry.models import ceil_to_window, floor_to_window

if TYPE_CHECKING:
    from datetime import datetime

    from ioportal.load.analysis.replay.impact_by_group import QueueHarms
    from ioportal.load.analysis.replay.server import Plateau
    from ioportal.load.analysis.replay.spared_waiting import Harm
    from ioportal.load.impact.replays import Served

PARTS = {  # of each principal, by second
    "start": UTC_US,
    "principal": pl.String(),
    "work_s": pl.Float64(),  # as it was wished
    "arrived_s": pl.Float64(),  # work that arrived
    "waited_s": pl.Float64(),
}


class GroupSeconds(NamedTuple):
    """The harm of a group in a queue.

    Args:
        alone: whether it is what the group alone adds to the waiting of the calm senders.
        scale: measured waiting / replayed waiting of others.
        users_share: the part of others' waiting that is of users' requests.
        members: its principals.
        sent_s: seconds in which its requests arrived.
        seconds: columns of `load.analysis.replay.seconds.SECONDS`.
    """

    alone: bool
    scale: float
    users_share: float
    members: list[str]
    sent_s: int
    seconds: pl.DataFrame

    @property
    def requests(self) -> float:
        """How many requests it sent."""
        return float(self.seconds["group_requests"].sum())

    @property
    def users_waited_s(self) -> float:
        """How long users' requests of others waited, as measured."""
        return self.users_share * float(self.seconds["measured_wait_s"].sum())

    @property
    def request_wait_s(self) -> float:
        """The extra wait of a request of others because of the group: the mean in the queue."""
        sums = self.seconds.select("impact_s", "outside_s", "others_requests").sum()
        impact_s, outside_s, requests = sums.row(0)
        return float((impact_s + outside_s) / requests)


class Queue(NamedTuple):
    """A queue.

    Args:
        start: start of its first second.
        end: when the last request had waited.
        capacity: work that the server does in a second.
        is_traced: whether most of it was traced; otherwise impact is an estimate.
        groups: columns of `load.analysis.replay.impact_by_group.QUEUES`.
        parts: columns of `PARTS`.
        by_group: by kind and key of the groups.
    """

    start: datetime
    end: datetime
    capacity: Plateau
    is_traced: bool
    groups: pl.DataFrame
    parts: pl.DataFrame
    by_group: dict[tuple[str, str], GroupSeconds]

    def others(self, group: tuple[str, str]) -> list[str]:
        """Return the principals whose waiting is the impact of a group."""
        kind, key = group
        others: list[str] = self.groups.filter(kind=kind, key=key)["others"].item().to_list()
        return others


def find(
    server_id: int,
    start: datetime,
    end: datetime,
    *,
    at: datetime | None = None,
    group: tuple[str, str] | None = None,
) -> Queue | None:
    """Return a queue of [start, end) as stored impact knows it: the one with most impact.

    Args:
        server_id: a metadata server.
        start: start of the analysed range.
        end: end of the range.
        at: a time in the queue; None: any.
        group: kind and key of the group whose impact counts; None: any.

    Returns:
        None: there is no such queue, or its seconds are not stored.
    """
    best, most_s = None, 0.0
    for again in replays.served(server_id, floor_to_window(start), ceil_to_window(end), at=at):
        for part in again.parts:
            first, last = (time_of(again.demand, n) for n in (part.queue.first, part.queue.end))
            impact_s = max(
                (harm.spared_s.sum() for *key, harm in part.harms if group in {None, tuple(key)}),
                default=0.0,
            )
            is_wanted = part.queue.has_backlog and (at is None or first <= at < last)
            if is_wanted and again.overlaps(part.queue) and impact_s > most_s:
                best, most_s = (again, part), impact_s
    return _queue(*best) if best else None


def _queue(again: Served, part: QueueHarms) -> Queue:
    requested, queue = again.demand, part.queue
    flow = wished(requested, again.capacity.value)  # as the seconds of groups have it
    groups, _ = in_queues(requested, [part], least_waited_s=0.0)
    steps = range(queue.first, queue.end)
    starts = pl.Series("start", [time_of(requested, step) for step in steps], UTC_US)
    amounts = {
        name: table[queue.first : queue.end].ravel()
        for name, table in (
            ("work_s", flow.work_s),
            ("arrived_s", requested.work_s),
            ("waited_s", requested.waited_s),
        )
    }
    of_sender = pl.DataFrame({PRINCIPAL: requested.senders}).join(
        again.members, on=PRINCIPAL, how="left", maintain_order="left"
    )
    parts = pl.DataFrame(
        {
            "start": starts.repeat_by(len(requested.senders)).explode(),
            PRINCIPAL: requested.senders * len(steps),
            **amounts,
        },
        PARTS,
    )
    parts = parts.filter(pl.any_horizontal(pl.col(*amounts) > 0))
    arrived = parts.filter(pl.col("arrived_s") > 0)

    def of_group(kind: str, key: str, harm: Harm) -> GroupSeconds:
        members = of_sender.filter(pl.col(kind) == key)[PRINCIPAL].to_list()
        return GroupSeconds(
            harm.curves.alone,
            harm.scale,
            harm.counted_share,
            members,
            arrived.filter(pl.col(PRINCIPAL).is_in(members))["start"].n_unique(),
            by_second(requested, harm, again.capacity.value),
        )

    return Queue(
        time_of(requested, queue.first),
        time_of(requested, drained(requested, queue)),
        again.capacity,
        part.is_traced,
        groups,
        parts,
        {(kind, key): of_group(kind, key, harm) for kind, key, harm in part.harms},
    )
