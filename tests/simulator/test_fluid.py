"""A metadata server as a fluid queue."""

import numpy as np
import pytest

from simulator.servers.fluid import Demand, Fluid

CAPACITY_PER_S, WORK_S = 10_000, 41e-6
SECONDS = 120


def server(*rates, in_flight=100, capacity_per_s=CAPACITY_PER_S):
    """Return a server whose senders have requests per second: pairs of a rate and its seconds."""
    rows = [
        (second, sender, rate)
        for sender, (rate, begin, end) in enumerate(rates)
        for second in range(begin, end)
    ]
    second, sender, requests = np.array(sorted(rows)).T
    demand = Demand(second, sender, requests.astype(float), requests * WORK_S)
    return Fluid(demand, SECONDS, np.full(len(rates), float(in_flight)), capacity_per_s)


def test_a_server_with_little_load_has_no_queue():
    fluid = server((300, 0, SECONDS), (500, 20, 60))

    assert fluid.episodes == []
    assert fluid.load.max() == pytest.approx(0.08)


def test_all_requests_are_served_after_an_overload():
    fluid = server((300, 0, SECONDS), (30_000, 20, 30))

    (episode,) = fluid.episodes
    assert episode.start == 20
    assert episode.served[:, 1].sum() == pytest.approx(300_000, abs=1)
    assert episode.end - episode.start == pytest.approx(
        31, abs=2
    )  # 300,000 of 9,800 - 300 a second
    assert episode.served.sum(axis=1).max() <= CAPACITY_PER_S


def test_waiting_grows_with_the_requests_that_clients_send_at_once():
    episodes = [
        server((300, 0, SECONDS), (30_000, 20, 30), in_flight=most).episodes[0]
        for most in (8, 80, 800)
    ]

    spent_s = [(each.wait_s + WORK_S * each.stretch).max() for each in episodes]
    assert spent_s == pytest.approx([8e-4, 8e-3, 8e-2], rel=0.1)
