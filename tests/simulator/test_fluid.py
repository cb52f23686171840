"""A metadata server as a fluid queue."""

import numpy as np
import pytest

from simulator.labelled import harm
from simulator.servers.fluid import Demand, Fluid

CAPACITY_PER_S, WORK_S = 10_000, 41e-6
SECONDS = 120


def server(*rates, in_flight=100):
    """Return a server whose senders have requests per second: pairs of a rate and its seconds."""
    rows = [
        (second, sender, rate)
        for sender, (rate, begin, end) in enumerate(rates)
        for second in range(begin, end)
    ]
    second, sender, requests = np.array(sorted(rows)).T
    demand = Demand(second, sender, requests.astype(float), requests * WORK_S)
    return Fluid(demand, SECONDS, np.full(len(rates), float(in_flight)), CAPACITY_PER_S)


def waited_s(fluid, *groups):
    return [each.waited_s for each in harm.measure(fluid, [np.array(group) for group in groups])]


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
    waiting = [
        server((300, 0, SECONDS), (30_000, 20, 30), in_flight=most).episodes[0].wait_s.max()
        for most in (8, 80, 800)
    ]

    assert waiting == pytest.approx([8e-4, 8e-3, 8e-2], rel=0.1)


def test_harm_is_the_waiting_of_others_without_a_storm():
    fluid = server((300, 0, SECONDS), (30_000, 20, 30), in_flight=800)

    bystander, storm = waited_s(fluid, [0], [1])
    assert storm == pytest.approx(300 * 31 * 0.08, rel=0.15)
    assert bystander == 0


def test_a_group_is_harmful_whose_members_are_not():
    storm = [(60, 20, 30)] * 300
    fluid = server((300, 0, SECONDS), *storm, in_flight=8)

    group, member = waited_s(fluid, range(1, 301), [7])
    assert group > 100
    assert member < group / 20


def test_a_moderate_load_harms_by_slow_service():
    fluid = server((300, 0, SECONDS), (5_000, 0, SECONDS))

    (harmed,) = waited_s(fluid, [1])
    assert fluid.episodes == []
    assert harmed == pytest.approx(300 * SECONDS * WORK_S * (1 / 0.47 - 1 / 0.97), rel=0.01)


def test_harm_begins_when_others_have_waited_long_enough():
    fluid = server((300, 0, SECONDS), (30_000, 20, 30), in_flight=800)

    (storm,) = harm.measure(fluid, [np.array([1])])
    assert storm.onset(60) == 22
    assert storm.onset(1e9) is None
