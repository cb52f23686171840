"""Impact on traced servers: their slow intervals, served again without each group."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from collectors.lustre.rpc_seconds import SLICE_S
from ioportal.activity import baselines, demand, principal_windows
from ioportal.analysis.impact import MAX_WAIT, MEMBERS
from ioportal.analysis.replay import impact as replay
from ioportal.analysis.replay.demand import Demand
from ioportal.analysis.slowness import EVERY_SLOW_WINDOW
from ioportal.telemetry import levels
from ioportal.telemetry.coverage import Interval
from ioportal.telemetry.models import AttributedSecond

if TYPE_CHECKING:
    from datetime import datetime

DELAY = timedelta(seconds=2 * SLICE_S)  # until agents have sent the demand of a second
_LONGEST = timedelta(minutes=10)  # part of a queue that is served again


class Impacts(NamedTuple):
    """The impact in slow intervals.

    Args:
        impacts: columns of `analysis.replay.impact.IMPACTS`.
        members: the groups of the principals: columns of `analysis.impact.MEMBERS`.
    """

    impacts: pl.DataFrame
    members: pl.DataFrame


def of_server(
    server_id: int,
    start: datetime,
    end: datetime,
    usual: pl.DataFrame,
    until: datetime | None = None,
) -> Impacts:
    """Return the impact in the slow windows of a traced server that start in [start, end).

    Args:
        server_id: a metadata server.
        start: start of the first window. Queues that reach beyond are served completely.
        end: end of the last window.
        usual: baselines of the server: columns of `analysis.impact.BASELINES`.
        until: up to when the demand is known; None: it is complete.
    """
    nothing = Impacts(pl.DataFrame(schema=replay.IMPACTS), pl.DataFrame(schema=MEMBERS))
    slowdowns = baselines.slowdowns([server_id], start, end, usual, EVERY_SLOW_WINDOW)
    capacity_s = demand.capacity_s(server_id, end, usual) if slowdowns else None
    if capacity_s is None:
        return nothing
    found = [nothing]
    for slow in slowdowns:
        queue = whole_queues(server_id, slow.start, slow.end)
        seconds = demand.seconds(server_id, queue.start - MAX_WAIT, queue.end)
        if seconds.is_empty():
            continue
        members = principal_windows.members(seconds)
        users = members.drop_nulls("user")["principal"]
        served = Demand.of(demand.requests(seconds, usual, users), demand.SECOND)
        impacts = replay.by_window(served, members, capacity_s, until)
        is_slow = pl.col("start").is_between(slow.start, slow.end, closed="left")
        found.append(Impacts(impacts.filter(is_slow), members))
    parts = zip(*found, strict=True)
    impacts, members = (pl.concat(frames, how="diagonal") for frames in parts)
    return Impacts(impacts, members.unique("principal"))


def whole_queues(server_id: int, start: datetime, end: datetime) -> Interval:
    """Return an interval with the rest of the slow episodes of a server at both of its ends."""
    around = AttributedSecond.objects.between(start - _LONGEST, end + _LONGEST)
    known = set(around.filter(server_id=server_id).values_list("start", flat=True).distinct())
    width = levels.IMPACT.width
    while start - width in known:
        start -= width
    while end in known:
        end += width
    return Interval(start, end)
