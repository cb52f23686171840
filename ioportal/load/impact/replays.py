"""Impact on traced servers: their slow intervals, served again without each group."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import polars as pl
from django.db.models import F, Sum
from django.utils import timezone

from collectors.lustre.rpc_seconds import SLICE_S
from ioportal.load import baselines
from ioportal.load.analysis.replay import impact_by_group as replay
from ioportal.load.analysis.replay.demand import Demand
from ioportal.load.analysis.replay.seconds import time_of
from ioportal.load.analysis.replay.server import at_capacity
from ioportal.load.analysis.replay.spared_waiting import (
    BEFORE_S,
    MOST_UNTRACED,
    OPEN_S,
    OPEN_SHARE,
    YOUNG_S,
)
from ioportal.load.analysis.slowness import EVERY_SLOW_WINDOW
from ioportal.load.analysis.waiting import MAX_WAIT, MEMBERS
from ioportal.load.impact import demand, principal_windows
from ioportal.telemetry import coverage, levels
from ioportal.telemetry.coverage import Interval
from ioportal.telemetry.models import AttributedSecond, Coverage, LoadWindow, floor_to_window

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from ioportal.load.analysis.replay.impact_by_group import QueueHarms
    from ioportal.load.analysis.replay.server import Plateau
    from ioportal.load.analysis.replay.spared_waiting import Queue
    from ioportal.load.analysis.waiting import Slowdown

DELAY = timedelta(seconds=2 * SLICE_S)  # until agents have sent the demand of a second
# After the end of a queue, until it is evaluated.
JUDGED_AFTER = DELAY + timedelta(seconds=OPEN_S + OPEN_SHARE * YOUNG_S)
_LONGEST = timedelta(minutes=10)  # part of a queue that is served again
_KEPT_BEFORE = timedelta(minutes=4)  # a slow episode: seconds show what senders did before
_LONGEST_EPISODE = timedelta(hours=6)  # whose begin shows the usual work of senders


class Impacts(NamedTuple):
    """The impact in slow intervals.

    Args:
        impacts: columns of `load.analysis.replay.impact_by_group.IMPACTS`.
        members: the groups of the principals: columns of `load.analysis.waiting.MEMBERS`.
    """

    impacts: pl.DataFrame
    members: pl.DataFrame


class Served(NamedTuple):
    """Slow intervals of the same queues, served again.

    Args:
        slow: the intervals.
        demand: their demand, including the rest of their queues.
        members: the groups of its principals: columns of `load.analysis.waiting.MEMBERS`.
        capacity: the work that the server does in a second.
        parts: the queues, and the harm of groups in them.
    """

    slow: list[Slowdown]
    demand: Demand
    members: pl.DataFrame
    capacity: Plateau
    parts: list[QueueHarms]

    def overlaps(self, queue: Queue) -> bool:
        """Return whether a queue is in the slow intervals at least in part."""
        start, end = (time_of(self.demand, step) for step in (queue.first, queue.end))
        return any(start < slow.end and end > slow.start for slow in self.slow)


class Replay(NamedTuple):
    """The impact in slow intervals, and their queues.

    Args:
        impact: by window.
        partly_traced: the same in queues of which much was not traced.
        queues: columns of `load.analysis.replay.impact_by_group.QUEUES`.
        parts: columns of `load.analysis.replay.impact_by_group.PARTS`.
        is_known: whether the capacity of the server is known; else impact is not.
    """

    impact: Impacts
    partly_traced: Impacts
    queues: pl.DataFrame
    parts: pl.DataFrame
    is_known: bool


class _Asked(NamedTuple):
    """Slow intervals of which the impact is asked for.

    Args:
        slow: intervals of the same queues.
        whole: them with the rest of their queues.
        usual: baselines of the server before them: columns of `load.analysis.waiting.BASELINES`.
        capacity: the work that the server does in a second, as it is known at their end; None: it
            is unknown.
    """

    slow: list[Slowdown]
    whole: Interval
    usual: pl.DataFrame
    capacity: Plateau | None


def of_server(
    server_id: int, start: datetime, end: datetime, until: datetime | None = None
) -> Replay:
    """Return the impact in the slow windows of a traced server that start in [start, end).

    Args:
        server_id: a metadata server.
        start: start of the first window. Queues that reach beyond are served completely.
        end: end of the last window.
        until: up to when the demand is known; None: it is complete.
    """
    asked = _asked(server_id, start, end)
    schemas = (replay.IMPACTS, replay.IMPACTS, MEMBERS, replay.QUEUES, replay.PARTS)
    found = [tuple(pl.DataFrame(schema=schema) for schema in schemas)]
    for again in _served(server_id, asked, until):
        is_slow = pl.any_horizontal(
            pl.col("start").is_between(slow.start, slow.end, closed="left") for slow in again.slow
        )
        impacts, partly = (
            replay.by_window(again.demand, [p for p in again.parts if p.is_traced is whole]).filter(
                is_slow
            )
            for whole in (True, False)
        )
        listed = [part for part in again.parts if again.overlaps(part.queue)]
        found.append((impacts, partly, again.members, *replay.in_queues(again.demand, listed)))
    impacts, partly, members, queues, parts = (
        pl.concat(frames, how="diagonal") for frames in zip(*found, strict=True)
    )
    # A queue may be part of two slow intervals.
    members = members.unique("principal")
    return Replay(
        Impacts(impacts, members),
        Impacts(partly, members),
        queues.unique(["start", "kind", "key"], keep="first", maintain_order=True),
        parts.unique(["start", "principal"], keep="first", maintain_order=True),
        is_known=all(each.capacity for each in asked),
    )


def served(
    server_id: int, start: datetime, end: datetime, *, at: datetime | None = None
) -> Iterator[Served]:
    """Return the slow intervals of a traced server, served again.

    Args:
        server_id: see `of_server`.
        start: see `of_server`.
        end: see `of_server`.
        at: a time of the only queues that are wanted; None: all are.
    """
    return _served(server_id, _asked(server_id, start, end, at))


def _asked(
    server_id: int, start: datetime, end: datetime, at: datetime | None = None
) -> list[_Asked]:
    """Return the slow intervals in [start, end), in order; with the queues of a time, if given."""
    of_queues: dict[Interval, list[Slowdown]] = defaultdict(list)
    for span in baselines.spans(start, end):
        if at and not span.start - MAX_WAIT <= at < span.end + MAX_WAIT:
            continue
        usual = baselines.at_time([server_id], span.start)
        for slow in baselines.slowdowns([server_id], *span, usual, EVERY_SLOW_WINDOW):
            whole = whole_queues(server_id, slow.start, slow.end)
            if at is None or whole.start - MAX_WAIT <= at < whole.end:
                of_queues[whole].append(slow)
    if not of_queues:
        return []
    wholes = sorted(of_queues)
    usuals = [baselines.at_time([server_id], whole.start) for whole in wholes]
    ends = [(whole.end, usual) for whole, usual in zip(wholes, usuals, strict=True)]
    capacities = demand.capacities(server_id, ends)
    return [
        _Asked(of_queues[whole], whole, usual, capacity)
        for whole, usual, capacity in zip(wholes, usuals, capacities, strict=True)
    ]


def _served(
    server_id: int, asked: Iterable[_Asked], until: datetime | None = None
) -> Iterator[Served]:
    for slow, whole, usual, capacity in asked:
        seconds = demand.seconds(server_id, whole.start - _KEPT_BEFORE, whole.end)
        if capacity is None or seconds.is_empty():
            continue
        members = principal_windows.members(seconds)
        users = members.drop_nulls("user")["principal"]
        counted = Demand.of(demand.requests(seconds, usual, users), demand.SECOND)
        requested = at_capacity(counted, capacity.value)
        end = time_of(requested, len(requested.work_s))
        traced = coverage.traced([server_id], requested.start, end)
        untraced = coverage.gaps(traced, traced[0].start, traced[-1].end) if traced else []
        untimed = _untimed(server_id, requested.start, end)
        earlier = _earlier(server_id, whole.start, usual)
        parts = replay.queue_harms(
            requested, members, capacity.value, until, untraced, untimed=untimed, earlier=earlier
        )
        yield Served(slow, requested, members, capacity, parts)


def _untimed(server_id: int, start: datetime, end: datetime) -> list[Interval]:
    """Return the windows around [start, end) in which many RPCs of a server have no times."""
    windows = LoadWindow.objects.between(floor_to_window(start), end).filter(server_id=server_id)
    untimed = (
        windows.values("start")
        .annotate(rpcs=Sum("count"), untimed=Sum(F("count") - F("timed")))
        .filter(untimed__gt=MOST_UNTRACED * F("rpcs"))
    )
    return [Interval(row["start"], row["start"] + levels.IMPACT.width) for row in untimed]


def _earlier(server_id: int, start: datetime, usual: pl.DataFrame) -> pl.DataFrame | None:
    """Return the work of senders in a second before a slow episode that began before a time.

    Seconds are kept from some time before a slow episode on. None: the episode does not begin
    before the time.
    """
    begin = whole_queues(server_id, start, start, _LONGEST_EPISODE).start
    if begin == start:
        return None
    seconds = demand.seconds(server_id, begin, begin + timedelta(seconds=BEFORE_S))
    work = demand.requests(seconds, usual, users=())
    return work.group_by("sender").agg(work_s=pl.sum("work_us") / 1e6 / BEFORE_S)


def known_until(server_id: int) -> datetime:
    """Return up to when the demand on a traced server is known."""
    traced = coverage.last_observed(Coverage.Source.RPC_TRACE, {server_id: timedelta(0)})
    latest = timezone.now() - DELAY
    return min(traced.get(server_id, latest), latest)


def whole_queues(
    server_id: int, start: datetime, end: datetime, longest: timedelta = _LONGEST
) -> Interval:
    """Return an interval with the rest of the slow episodes of a server at both of its ends.

    Args:
        server_id: a metadata server.
        start: start of the interval.
        end: its end.
        longest: the rest at an end at most.
    """
    around = AttributedSecond.objects.between(start - longest, end + longest)
    known = set(around.filter(server_id=server_id).values_list("start", flat=True).distinct())
    width = levels.IMPACT.width
    while start - width in known:
        start -= width
    while end in known:
        end += width
    return Interval(start, end)
