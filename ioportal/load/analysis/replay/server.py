"""A metadata server as a queue: what its demand would have waited, with some senders left out.

The server does a fixed amount of work in a second, first come, first served. A sender has no more
requests at the server than its clients allow; the rest of its demand waits at its clients.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioportal.load.analysis.replay.demand import Bools, Demand, Floats, Ints

SLOW_TIMES = 4.0  # times as long as on an idle server: requests queue
FULL_SHARE = 0.93  # of the capacity: the server does no more
AT_LIMIT = 0.5  # of the limit of requests in flight
_BUSY_SHARE = 0.5  # of the capacity: slow steps with less are blocked, not busy
_FEWEST_STEPS = 3
_CALM_PERCENTILE = 90  # of the work of steps without waiting: no capacity is below it
_FEWEST_CALM_STEPS = 20
CHANCE = 0.03  # of the work of a busy step
TYPICAL = 0.15  # difference from the capacity of the steps inside queues, relative
_QUANTILE = 1.96  # of 95 % intervals
_MEDIAN = math.sqrt(math.pi / 2)  # error of a median / that of a mean
_LIMIT_PERCENTILE = 90
_LARGE_SHARE = 0.1  # of the capacity: work of a sender that shows the limit
_FEWEST_FLIGHT = 1.0  # requests of a client
_GROWTH = 1.2  # of a sender's requests at the server, from the first half of a spell to the second
_FEWEST_GROWING = 5  # steps of a half
_LONGEST_PAUSE = 2  # steps inside a spell
_BEFORE = 20  # steps before a spell that show what a sender wishes: the last that are not full
_FEWEST_CALM = 2  # of these
_STEADY = 0.7  # of the rate in the spell
_MOST_LOAD = 0.98  # of the capacity, without a backlog
_ROUNDS = 8  # in which senders whose demand is served completely leave the rest to others


@dataclass(frozen=True)
class Plateau:
    """The work that a server does in a second while requests queue.

    Args:
        value: seconds of work on an idle server.
        low: lower end of its interval.
        high: upper end.
        steps: number of steps that show it.
        request_s: mean work of a request in these steps.
    """

    value: float
    low: float
    high: float
    steps: int
    request_s: float

    @property
    def requests(self) -> tuple[float, float, float]:
        """Value and interval in requests of the mix that the server did meanwhile."""
        return self.value / self.request_s, self.low / self.request_s, self.high / self.request_s


def plateau(demand: Demand) -> Plateau | None:
    """Return the capacity that a demand shows; None: in too few steps, or they contradict.

    It is the median work of the steps inside queues, from the second to the last but one, that are
    `TYPICAL`: those with most of the work. A server that is blocked does less, and requests that
    are cheaper than usual look like more. If it did more while nothing waited, the requests inside
    queues took more work than usual, and who sent these is not known.
    """
    served_s = demand.served_s.sum(axis=1) / demand.width_s
    is_slow = _is_slow(demand, served_s)
    inside = np.flatnonzero(_inside(is_slow))
    shown = inside[_typical(served_s[inside])]
    if len(shown) < _FEWEST_STEPS or 2 * served_s[shown].sum() < served_s[inside].sum():
        return None
    typical = served_s[shown]
    value = float(np.median(typical))
    calm = served_s[~is_slow & (served_s > 0)]
    if len(calm) >= _FEWEST_CALM_STEPS and np.percentile(calm, _CALM_PERCENTILE) > value:
        return None
    error = _QUANTILE * _MEDIAN * float(typical.std()) / math.sqrt(len(typical))
    request_s = float(demand.served_s[shown].sum() / demand.ended[shown].sum())
    return Plateau(value, value - error, value + error, len(shown), request_s)


def _typical(values: Floats) -> Ints:
    """Return which of some values are typical: those within `TYPICAL` with the largest sum."""
    if not len(values):
        return np.empty(0, dtype=int)
    order = np.argsort(values)
    ordered = values[order]
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    last = np.searchsorted(ordered, ordered * (1 + TYPICAL) / (1 - TYPICAL), side="right")
    first = int(np.argmax(sums[last] - sums[:-1]))
    typical: Ints = order[first : last[first]]
    return typical


def at_capacity(demand: Demand, capacity_s: float) -> Demand:
    """Return a demand whose work inside queues is in proportion to the time that it took.

    A busy server works at its capacity. If it did more or a little less work, usual times do not
    fit its mix of requests: the work of the queue's steps is corrected.

    Args:
        demand: the demand of a server.
        capacity_s: the work that the server does in a second.
    """
    served_s = demand.served_s.sum(axis=1) / demand.width_s
    is_queue = _is_slow(demand, served_s) & (served_s > _BUSY_SHARE * capacity_s)
    shown = np.array(list(_shown(served_s, is_queue, capacity_s)), dtype=int)
    if not len(shown):
        return demand
    nearest_s = served_s[_nearest(shown, len(served_s))]
    is_other = is_queue & (np.abs(nearest_s / capacity_s - 1) > CHANCE)
    factor = np.where(is_other, capacity_s / nearest_s, 1.0)[:, None]
    return replace(demand, work_s=demand.work_s * factor, served_s=demand.served_s * factor)


def _shown(served_s: Floats, is_queue: Bools, capacity_s: float) -> Iterator[int]:
    """Yield the typical steps of each queue, if the server is busy in them."""
    edges = np.flatnonzero(np.diff(np.pad(is_queue.astype(np.int8), 1)))
    for first, end in edges.reshape(-1, 2).tolist():
        inside = np.arange(first + 1, end - 1)
        typical = np.sort(inside[_typical(served_s[inside])])
        if len(typical) and served_s[typical].mean() > (1 - TYPICAL) * capacity_s:
            yield from typical.tolist()


def _nearest(chosen: Ints, length: int) -> Ints:
    """Return the nearest of some steps, in order, to each step; of two, the earlier."""
    steps = np.arange(length)
    after = np.searchsorted(chosen, steps).clip(max=len(chosen) - 1)
    before = (after - 1).clip(min=0)
    is_earlier = np.abs(chosen[before] - steps) <= np.abs(chosen[after] - steps)
    nearest: Ints = chosen[np.where(is_earlier, before, after)]
    return nearest


def _is_slow(demand: Demand, served_s: Floats) -> Bools:
    """Return the steps in which requests wait."""
    is_slow: Bools = demand.flight.sum(axis=1) > SLOW_TIMES * served_s
    return is_slow & (served_s > 0)


def _inside(is_queue: Bools) -> Bools:
    """Return the steps of queues from the second to the last but one."""
    result = np.zeros_like(is_queue)
    result[1:-1] = is_queue[:-2] & is_queue[1:-1] & is_queue[2:]
    return result


@dataclass(frozen=True)
class Flow:
    """A demand as its senders wished it, and their most requests at the server.

    Args:
        work_s: work by step and sender.
        limit: requests of each sender at the server; infinite: no limit was reached.
    """

    work_s: Floats
    limit: Floats


def wished(demand: Demand, capacity_s: float) -> Flow:
    """Return the demand without the pace of the server.

    A sender with as many requests at a full server as its clients may send waits for answers: its
    arrivals show the pace of the server. The arrivals of such a spell move to its beginning: at the
    rate of the sender before it, or all in the first step. The limit of a client is taken from the
    busiest senders of full steps.
    """
    work_s = demand.work_s.copy()
    limit = np.full(len(demand.senders), np.inf)
    is_full = demand.served_s.sum(axis=1) >= FULL_SHARE * capacity_s * demand.width_s
    by_client = demand.flight / demand.clients
    is_large = demand.served_s >= _LARGE_SHARE * capacity_s * demand.width_s
    seen = by_client[is_full[:, None] & is_large & (by_client > _FEWEST_FLIGHT)]
    if len(seen) < _FEWEST_STEPS:
        return Flow(work_s, limit)
    of_client = float(np.percentile(seen, _LIMIT_PERCENTILE))
    at_limit = is_full[:, None] & (by_client >= AT_LIMIT * of_client) & (demand.work_s > 0)
    for sender in np.flatnonzero(at_limit.any(axis=0)).tolist():
        steps = np.flatnonzero(at_limit[:, sender])
        for spell in np.split(steps, np.flatnonzero(np.diff(steps) > _LONGEST_PAUSE) + 1):
            rows = slice(spell[0], spell[-1] + 1)
            if _grows(demand.flight[rows, sender]):
                continue
            limit[sender] = of_client * demand.clients[sender]
            before = np.flatnonzero(~is_full[: spell[0]])[-_BEFORE:]
            work_s[rows, sender] = _sooner(
                demand.work_s[rows, sender], demand.work_s[before, sender]
            )
    return Flow(work_s, limit)


def _grows(flight: Floats) -> bool:
    """Return whether the requests of a sender at the server become more during a spell.

    No limit holds them.
    """
    half = len(flight) // 2
    if half < _FEWEST_GROWING:
        return False
    return float(np.median(flight[half:])) > _GROWTH * float(np.median(flight[:half]))


def _sooner(work_s: Floats, calm_s: Floats) -> Floats:
    """Return the work of a spell as it was wished: at the rate before it, or in its first step.

    Args:
        work_s: work of the spell, by step.
        calm_s: work in the steps before in which the server was not full.
    """
    total_s = np.cumsum(work_s)
    steady_s = (
        float(np.median(calm_s[calm_s > 0])) if np.count_nonzero(calm_s) >= _FEWEST_CALM else 0.0
    )
    if steady_s < _STEADY * work_s.mean():  # it has just begun
        steady_s = np.inf
    steps = np.arange(1, len(work_s) + 1)
    wished_s = np.minimum(np.maximum(total_s, steady_s * steps), total_s[-1])
    result: Floats = np.diff(wished_s, prepend=0.0)
    return result


def waiting(
    flow: Flow, request_s: Floats, capacity_s: float, present: Bools
) -> Iterator[tuple[Floats, Floats]]:
    """Yield the waiting of the requests that a server serves in each step, and of a single request.

    Args:
        flow: the demand; work by step.
        request_s: work of a request of each sender.
        capacity_s: work of the server in a step.
        present: senders of each scenario; shape (scenarios, senders).

    Yields:
        Waiting in units of a step, shape (scenarios, senders), and the waiting of a single request,
        shape (scenarios,).
    """
    most_s = flow.limit * request_s
    pending = np.zeros(present.shape)
    before = np.zeros(len(present))
    requests = (flow.work_s / request_s).sum()
    mean_s = flow.work_s.sum() / requests if requests else 0.0
    for work_s in flow.work_s:
        pending += work_s * present
        load = pending.sum(axis=1) / capacity_s
        served = pending.copy()
        is_full = load > 1
        if is_full.any():
            served[is_full] = _shared(pending[is_full], most_s, capacity_s)
        pending = np.maximum(pending - served, 0)
        left = np.minimum(pending, most_s).sum(axis=1) / capacity_s
        below = np.minimum(load, _MOST_LOAD)
        calm = below / (1 - below) * mean_s / capacity_s
        of_each = np.maximum((before + left) / 2, calm)
        yield served / request_s * of_each[:, None], of_each
        before = left


def _shared(pending: Floats, most_s: Floats, capacity_s: float) -> Floats:
    """Share the work of a step in proportion to the requests at the server.

    Senders whose demand is less than their share are served completely.
    """
    at_server = np.minimum(pending, most_s)
    served = np.zeros_like(pending)
    is_open = pending > 0
    share = np.zeros(len(pending))
    for _ in range(_ROUNDS):
        rest = capacity_s - np.where(is_open, 0, served).sum(axis=1)
        waiting_s = np.where(is_open, at_server, 0).sum(axis=1)
        share = np.divide(rest, waiting_s, out=np.zeros_like(rest), where=waiting_s > 0)
        is_done = is_open & (share[:, None] * at_server >= pending)
        if not is_done.any():
            break
        served[is_done] = pending[is_done]
        is_open &= ~is_done
    return np.where(is_open, np.minimum(share[:, None] * at_server, pending), served)
