"""Senders at a limit of requests in flight, and those that no limit holds."""

import heapq

import numpy as np
import pytest

from ioportal.load.analysis.replay.server import wished
from tests.load.analysis.replay.test_spared_waiting import (
    BACKGROUND,
    CAPACITY_S,
    WORK_S,
    demand,
    served,
)


def closed_loop(in_flight, begin, end):
    """Return requests next to others: a storm sends the next one when an answer arrives."""
    others = np.random.default_rng(2).random(200 * 120) * 120
    waiting = [(float(at), 0) for at in others] + [(float(begin), 1)] * in_flight
    heapq.heapify(waiting)
    arrival, sender, took, free = [], [], [], 0.0
    while waiting:
        at, who = heapq.heappop(waiting)
        free = max(free, at) + WORK_S / CAPACITY_S
        arrival.append(at)
        sender.append(who)
        took.append(free - at)
        if who and free < end:
            heapq.heappush(waiting, (free, 1))
    return tuple(map(np.array, (arrival, sender, took)))


def test_a_sender_that_waits_for_answers_wished_to_send_sooner():
    requested = demand(*closed_loop(2_000, 20, 60), clients=60.0)

    flow = wished(requested, CAPACITY_S)

    assert np.isinf(flow.limit[0])
    assert flow.limit[1] == pytest.approx(2_000, rel=0.1)
    assert flow.work_s[:30, 1].sum() > 3 * requested.work_s[:30, 1].sum()


def test_a_storm_whose_requests_pile_up_is_at_no_limit():
    requested = demand(*served(BACKGROUND, (11_000, 20, 100), seconds=160), clients=60.0)

    flow = wished(requested, CAPACITY_S)

    assert np.isinf(flow.limit).all()
    assert flow.work_s == pytest.approx(requested.work_s)
