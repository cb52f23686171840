"""A metadata server as a queue of single requests, and the harm of its senders."""

import numpy as np
import pytest

from simulator.labelled import harm
from simulator.labelled.harm import Suspect
from simulator.servers.queueing import Discipline, Requests, Server

CAPACITY_PER_S, WORK_S = 1_000, 1e-3
SECONDS = 120
DISCIPLINES = list(Discipline)


def demand(*rates, work_s=WORK_S, spread=0.0):
    """Return random requests of senders: each with a rate and its seconds."""
    chance = np.random.default_rng(1)
    moments = [
        begin + (end - begin) * chance.random(rate * (end - begin)) for rate, begin, end in rates
    ]
    sender = np.repeat(np.arange(len(rates)), [len(each) for each in moments])
    demand_s = np.concatenate(moments)
    order = np.argsort(demand_s, kind="stable")
    work = work_s * chance.lognormal(-(spread**2) / 2, spread, len(order))
    return Requests(demand_s[order], sender[order], sender[order], work, np.zeros(len(order)))


def server(senders, *, in_flight=80, **options):
    return Server(CAPACITY_PER_S * WORK_S, np.broadcast_to(in_flight, senders), **options)


def measure(rates, *groups, own=(), **options):
    """Return the harm of each group; its user has the other senders `own`, too."""
    requests, served_by = demand(*rates), server(len(rates), **options)
    served = served_by.serve(requests)
    suspects = [Suspect(np.array(group), np.array([*group, *own])) for group in groups]
    return harm.measure(served_by, requests, served, suspects, np.arange(len(rates)))


def waited_s(rates, *groups, **options):
    return [each.waited_s for each in measure(rates, *groups, **options)]


def test_requests_wait_for_all_work_before_them():
    requests = Requests(
        demand_s=np.array([0.0, 0.0, 0.0, 5.0]),
        sender=np.arange(4),
        client=np.arange(4),
        idle_s=np.array([1.0, 2.0, 1.0, 1.0]),
        locked_s=np.array([0.0, 0.0, 3.0, 0.0]),
    )

    served = server(4, threads=2).serve(requests)

    assert served.turn_s.tolist() == [0, 1, 3, 5]
    assert served.answer_s.tolist() == [1, 3, 7, 6]  # a lock occupies a thread, not the server
    assert served.thread_s.tolist() == [0, 0, 1, 5]


@pytest.mark.parametrize("load", [0.3, 0.8])
def test_waiting_at_random_arrivals(load):
    requests = demand((round(load * CAPACITY_PER_S), 0, SECONDS))

    served = server(1, in_flight=100_000).serve(requests)

    expected_s = load / (1 - load) / 2 * WORK_S  # Pollaczek and Khinchine
    assert (served.turn_s - served.arrival_s).mean() == pytest.approx(expected_s, rel=0.1)


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_all_requests_are_served_within_the_limits(discipline):
    limits = np.array([8, 80, 16])
    requests = demand((30, 0, 60), (3_000, 10, 15), (2_000, 12, 14), spread=0.5)

    served = server(3, in_flight=limits, discipline=discipline).serve(requests)

    (queue,) = served.queues
    work_s = requests.idle_s[queue].sum()
    begin_s, end_s = requests.demand_s[queue.start], served.answer_s[queue].max()
    assert end_s - begin_s == pytest.approx(work_s, abs=0.1)  # always busy, never too fast
    assert (served.arrival_s >= requests.demand_s).all()
    assert (served.thread_s >= served.arrival_s).all()
    assert (served.turn_s >= served.arrival_s - 1e-9).all()
    assert served.answer_s - served.turn_s == pytest.approx(requests.idle_s)
    for sender, limit in enumerate(limits):
        mine = requests.sender == sender
        moments = np.concatenate([served.answer_s[mine], served.arrival_s[mine]])
        change = np.repeat([-1, 1], mine.sum())
        at_server = np.cumsum(change[np.lexsort((change, moments.round(9)))])
        assert at_server.max() <= limit
        assert at_server[-1] == 0


def test_turns_follow_arrivals():
    served = server(2).serve(demand((30, 0, 60), (3_000, 10, 15), spread=0.5))

    by_arrival = np.argsort(served.arrival_s, kind="stable")
    assert (np.diff(served.turn_s[by_arrival]) >= 0).all()


@pytest.mark.parametrize("in_flight", [1, 8, 10_000])
def test_a_sender_at_its_limit_waits_for_an_answer(in_flight):
    requests = demand((30, 0, 10), (150, 2, 4), work_s=10 * WORK_S, spread=0.5)

    served = server(2, in_flight=in_flight).serve(requests)

    arrival_s = requests.demand_s.copy()
    while True:  # each round, arrivals are later
        order = np.argsort(arrival_s, kind="stable")
        answer_s, free_s = np.empty(len(requests)), 0.0
        for row in order.tolist():
            answer_s[row] = free_s = max(arrival_s[row], free_s) + requests.idle_s[row]
        later_s = requests.demand_s.copy()
        for sender in (0, 1):
            rows = np.flatnonzero(requests.sender == sender)
            later_s[rows[in_flight:]] = np.maximum(
                later_s[rows[in_flight:]], answer_s[rows[:-in_flight]]
            )
        if np.allclose(later_s, arrival_s):
            break
        arrival_s = later_s
    assert served.arrival_s == pytest.approx(arrival_s)
    assert served.answer_s == pytest.approx(answer_s)


def test_the_requests_in_front_of_a_queue_have_threads():
    served = server(2).serve(demand((30, 0, 60), (3_000, 10, 20)))

    in_queue = (served.arrival_s > 11) & (served.answer_s < 39)
    wait_s = (served.thread_s - served.arrival_s)[in_queue]
    service_s = (served.answer_s - served.thread_s)[in_queue]
    assert np.median(service_s) == pytest.approx(16 * WORK_S)
    assert np.median(wait_s + service_s) == pytest.approx(80 * WORK_S, rel=0.05)


def test_in_round_robin_a_client_waits_for_one_request_of_each_other_client():
    requests = demand((30, 0, 60), (3_000, 10, 20))

    spent_s = [
        (served.answer_s - served.arrival_s)[requests.sender == 0].max()
        for served in (
            server(2, discipline=discipline).serve(requests) for discipline in DISCIPLINES
        )
    ]
    assert spent_s[0] > 75 * WORK_S
    assert spent_s[1] > 75 * WORK_S
    assert spent_s[2] < 10 * WORK_S


STORM = [(30, 0, SECONDS), (3_000, 20, 30)]  # 30,000 requests in 31 s


def test_harm_is_the_waiting_of_others_without_a_storm():
    bystander, storm = waited_s(STORM, [0], [1])

    assert storm == pytest.approx(30 * 31 * 80 * WORK_S, rel=0.1)
    assert bystander == 0


def test_a_group_is_harmful_whose_members_are_not():
    crowd = [(30, 0, SECONDS), *[(60, 20, 30)] * 50]

    group, member = waited_s(crowd, range(1, 51), [7], in_flight=8)
    assert group > 30 * 31 * 0.2
    assert member == 0


def test_a_moderate_load_harms_without_a_queue():
    (harmed,) = waited_s([(300, 0, SECONDS), (500, 0, SECONDS)], [1])

    with_s, without_s = (load / (1 - load) / 2 * WORK_S for load in (0.8, 0.3))
    assert harmed == pytest.approx(300 * SECONDS * (with_s - without_s), rel=0.1)


def test_harm_begins_when_others_have_waited_long_enough():
    (storm,) = measure(STORM, [1])

    assert storm.onset(24) == pytest.approx(30, abs=1)
    assert storm.onset(1e9) is None


def test_the_waiting_of_a_users_other_jobs_is_no_harm():
    rates = [(10, 0, SECONDS), (30, 0, SECONDS), (3_000, 20, 30)]

    (all_others,) = waited_s(rates, [2])
    (other_users,) = waited_s(rates, [2], own=[1])
    assert other_users == pytest.approx(all_others / 4, rel=0.1)


def test_a_bystander_of_an_overload_is_not_harmful():
    rates = [(30, 0, SECONDS), (980, 20, 60), (20, 0, SECONDS)]

    storm, bystander = waited_s(rates, [1], [2], in_flight=800)
    assert storm > 60
    assert bystander == 0  # although there would be no queue without it


def test_a_small_storm_behind_a_large_one_is_harmful_by_what_it_does_alone():
    rates = [(30, 0, SECONDS), (2_000, 20, 40), (1_200, 25, 35)]
    in_flight = [80, 40_000, 100]

    large, small = waited_s(rates, [1], [2], in_flight=in_flight)
    (alone,) = waited_s([rates[0], rates[2]], [1], in_flight=[80, 100])
    assert large > 30 * 20 * 5
    assert small == pytest.approx(alone, rel=0.1)
    assert alone == pytest.approx(30 * 12 * 0.1, rel=0.2)


def test_each_of_two_equal_storms_is_harmful():
    storms = waited_s([STORM[0], STORM[1], STORM[1]], [1], [2])

    assert min(storms) > 30 * 31 * 80 * WORK_S


def test_the_waiting_of_a_much_busier_user_is_its_own_doing():
    rates = [(30, 0, SECONDS), (900, 20, 60), (200, 20, 60)]

    busiest, second = waited_s(rates, [1], [2], in_flight=800)
    assert busiest > 200  # also of the second one
    assert second < 30 * 44 * 0.8 * 4 / 3  # of the first sender only
