"""A metadata server as a fluid queue."""

from collections import deque

import numpy as np
import pytest

from simulator.labelled import harm
from simulator.labelled.harm import Suspect
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


def waited_s(fluid, *groups):
    return [each.waited_s for each in measure(fluid, *groups)]


def measure(fluid, *groups, own=()):
    """Return the harm of each group; its user has the other senders `own`, too."""
    suspects = [Suspect(np.array(group), np.array([*group, *own])) for group in groups]
    return harm.measure(fluid, suspects, np.arange(len(fluid.work_s)))


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


def test_a_moderate_load_harms_without_an_overload():
    fluid = server((300, 0, SECONDS), (5_000, 0, SECONDS))

    (harmed,) = waited_s(fluid, [1])
    assert fluid.episodes == []
    queue_s = [load / (1 - load) / CAPACITY_PER_S for load in (0.53, 0.03)]
    assert harmed == pytest.approx(300 * SECONDS * (queue_s[0] - queue_s[1]), rel=0.01)


def test_harm_begins_when_others_have_waited_long_enough():
    fluid = server((300, 0, SECONDS), (30_000, 20, 30), in_flight=800)

    (storm,) = measure(fluid, [1])
    assert 22 <= storm.onset(60) <= 23
    assert storm.onset(1e9) is None


def test_the_waiting_of_a_users_other_jobs_is_no_harm():
    fluid = server((100, 0, SECONDS), (300, 0, SECONDS), (30_000, 20, 30), in_flight=800)

    (all_others,) = measure(fluid, [2])
    (other_users,) = measure(fluid, [2], own=[1])
    assert other_users.waited_s == pytest.approx(all_others.waited_s / 4, rel=0.05)


def test_the_waiting_of_a_users_other_jobs_is_no_harm_on_a_server_without_a_queue():
    fluid = server((500, 0, SECONDS), (1_500, 0, SECONDS), (5_000, 0, SECONDS))

    (all_others,) = measure(fluid, [2])
    (other_users,) = measure(fluid, [2], own=[1])
    assert other_users.waited_s == pytest.approx(all_others.waited_s / 4, rel=0.01)


def test_a_bystander_of_an_overload_is_not_harmful():
    fluid = server((300, 0, SECONDS), (9_500, 20, 60), (200, 0, SECONDS), in_flight=800)

    storm, bystander = waited_s(fluid, [1], [2])
    assert fluid.load[20:60].mean() == pytest.approx(1.0)
    assert storm > 100
    assert bystander == 0  # although there would be no queue without it


def test_a_storm_late_in_a_long_queue_is_harmful():
    fluid = server((300, 0, SECONDS), (11_000, 20, 52), (8_000, 55, 60), in_flight=800)

    _, late = waited_s(fluid, [1], [2])
    assert [(each.start, each.end) for each in fluid.episodes] == [(20, 62)]
    assert late > 150


def test_the_waiting_of_a_much_busier_user_is_its_own_doing():
    fluid = server((300, 0, SECONDS), (9_000, 20, 60), (2_000, 20, 60), in_flight=800)

    busiest, second = waited_s(fluid, [1], [2])
    assert busiest > 500  # also of the second one
    assert second < 300 * 40 * 0.1  # of the first sender only


def queued(*rates, in_flight, capacity_per_s=1_000):
    """Return the time of each sender's requests at a server that serves one after the other."""
    chance = np.random.default_rng(1)
    arrivals = sorted(
        (begin + (end - begin) * moment, sender)
        for sender, (rate, begin, end) in enumerate(rates)
        for moment in chance.random(rate * (end - begin))
    )
    waiting = [deque() for _ in rates]
    at_server = deque()
    present = [0] * len(rates)
    spent_s = [0.0] * len(rates)
    now, upcoming = 0.0, 0
    while upcoming < len(arrivals) or at_server:
        if not at_server:
            now = max(now, arrivals[upcoming][0])
        over = now + chance.exponential(1 / capacity_per_s) if at_server else now
        while upcoming < len(arrivals) and arrivals[upcoming][0] <= over:
            moment, sender = arrivals[upcoming]
            upcoming += 1
            if present[sender] < in_flight:
                present[sender] += 1
                at_server.append((moment, sender))
            else:
                waiting[sender].append(moment)
        if over > now:
            sent, sender = at_server.popleft()
            spent_s[sender] += over - sent
            present[sender] -= 1
            if waiting[sender]:
                waiting[sender].popleft()
                present[sender] += 1
                at_server.append((over, sender))
            now = over
    return spent_s


@pytest.mark.parametrize("storm_per_s", [600, 800, 1_200, 3_000])
def test_harm_equals_that_of_single_requests_in_a_queue(storm_per_s):
    senders = [(100, 0, 60), (storm_per_s, 0, 40)]
    fluid = server(*senders, in_flight=60, capacity_per_s=1_000)

    (harmed,) = waited_s(fluid, [1])
    with_storm, _ = queued(*senders, in_flight=60)
    (without_storm,) = queued(senders[0], in_flight=60)
    assert harmed == pytest.approx(with_storm - without_storm, rel=0.2)
