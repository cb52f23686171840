"""Harm by replay, compared with hand calculations and with a queue of single requests."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ioportal.load.analysis.replay.demand import REQUESTS, Demand
from ioportal.load.analysis.replay.server import at_capacity, plateau
from ioportal.load.analysis.replay.spared_waiting import Group, by_queue

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
WORK_S = 1e-4  # of a request
CAPACITY_S = 0.5  # seconds of work in a second: 5,000 requests


def harms(*replayed):
    return [harm for _, found in by_queue(*replayed) for harm in found]


def served(*senders, seconds=120, seed=1):
    """Return the demand as a queue of single requests serves it: first come, first served.

    Each sender is a tuple (requests a second, first second, last second).
    """
    chance = np.random.default_rng(seed)
    parts = [
        (begin + chance.random(rate * (end - begin)) * (end - begin), number)
        for number, (rate, begin, end) in enumerate(senders)
    ]
    arrival = np.concatenate([times for times, _ in parts])
    sender = np.concatenate([np.full(len(times), number) for times, number in parts])
    order = np.argsort(arrival)
    arrival, sender = arrival[order], sender[order]
    return arrival, sender, ends(arrival) - arrival


def ends(arrival):
    """Return when each request ends: it occupies the server for a fixed time."""
    each = WORK_S / CAPACITY_S
    before = np.arange(len(arrival)) * each
    return np.maximum.accumulate(arrival - before) + before + each


def demand(arrival, sender, took, clients=1_000.0):
    rows = (
        pl.DataFrame({"at": np.floor(arrival), "sender": sender, "took": took})
        .group_by("at", "sender")
        .agg(requests=pl.len(), took_us=pl.sum("took") * 1e6)
    )
    work_us = pl.col("requests") * WORK_S * 1e6
    return Demand.of(
        rows.select(
            start=pl.lit(START) + pl.duration(seconds=pl.col("at")),
            sender=pl.format("s{}", "sender"),
            requests="requests",
            work_us=work_us,
            service_us=work_us,
            took_us="took_us",
            counted=pl.lit(1.0),
            clients=pl.lit(clients),
        ).select(pl.col(name).cast(kind) for name, kind in REQUESTS.items()),
        SECOND,
    )


def harm_s(of_demand, *groups, owners=None):
    """Return the seconds that others would have been spared without each group of senders."""
    names = np.array(of_demand.senders)
    owners = owners or names.tolist()
    wanted = []
    for group in groups:
        members = np.isin(names, [f"s{n}" for n in group])
        own = np.isin(owners, np.array(owners)[members])
        wanted.append(Group(members, own))
    totals = dict.fromkeys(range(len(groups)), 0.0)
    for harm in harms(of_demand, wanted, owners, CAPACITY_S):
        totals[harm.group] += harm.spared_s.sum()
    return list(totals.values())


def spared_s(arrival, sender, without):
    """Return what the requests of others wait less if a sender is left out."""
    is_other = sender != without
    took = ends(arrival) - arrival
    alone = arrival[is_other]
    return took[is_other].sum() - (ends(alone) - alone).sum()


def at_limit():
    """Return a storm that waits for answers: its arrivals show the pace of the server."""
    in_flight, each = 500, WORK_S / CAPACITY_S
    steps = np.arange(20, 60, each * in_flight)
    storm = np.concatenate([at + np.arange(in_flight) * 1e-7 for at in steps])
    others = np.sort(np.random.default_rng(2).random(200 * 120) * 120)
    arrival = np.concatenate([others, storm])
    sender = np.concatenate([np.zeros(len(others)), np.ones(len(storm))])
    order = np.argsort(arrival, kind="stable")
    arrival, sender = arrival[order], sender[order].astype(int)
    return arrival, sender, ends(arrival) - arrival


BACKGROUND = (200, 0, 120)


@pytest.mark.parametrize("steady", [300, 1_500])
def test_a_storm_harms_others_and_a_bystander_does_not(steady):
    arrival, sender, took = served(BACKGROUND, (15_000, 20, 30), (steady, 0, 120))

    storm, bystander = harm_s(demand(arrival, sender, took), [1], [2])

    assert storm == pytest.approx(spared_s(arrival, sender, 1), rel=0.1)
    assert storm > 1_000
    assert bystander < 5


@pytest.mark.parametrize(
    ("known_s", "is_judged"), [(22, False), (35, False), (51, False), (60, True)]
)
@pytest.mark.parametrize("capacity_s", [CAPACITY_S, 1.05 * CAPACITY_S])
def test_a_queue_is_judged_when_it_has_drained(known_s, is_judged, capacity_s):
    arrival, sender, took = served(BACKGROUND, (15_000, 20, 30))  # drains at 51 s
    is_known = arrival + took <= known_s
    known = demand(*(each[is_known] for each in (arrival, sender, took)))
    storm = np.array([False, True])

    found = harms(known, [Group(storm, storm)], known.senders, capacity_s, known_s)

    assert bool(found) == is_judged


def test_whoever_works_while_a_queue_drains_is_not_its_cause():
    arrival, sender, took = served(BACKGROUND, (25_000, 20, 24), (2_000, 35, 44))

    storm, late = harm_s(demand(arrival, sender, took), [1], [2])

    assert storm > 5 * late
    assert storm == pytest.approx(spared_s(arrival, sender, 1), rel=0.15)


def test_a_group_that_works_as_before_hides_nobody_who_began():
    arrival, sender, took = served(
        (60, 0, 240), (3_400, 0, 240), (1_100, 60, 120), (1_600, 120, 240), seconds=240
    )
    of_demand = demand(arrival, sender, took)

    assert harm_s(of_demand, [2, 3])[0] > 1_000


@pytest.mark.parametrize(
    ("steady", "others"),
    [
        pytest.param(3_800, [(1_900, 60, 90)], id="busier than who began"),
        pytest.param(2_000, [(600, 60, 61)] * 40, id="a crowd of small senders"),
        pytest.param(1_100, [(10_000, 60, 90)], id="held for long"),
    ],
)
@pytest.mark.parametrize("clients", [1.0, 1_000.0])
def test_whoever_works_as_before_causes_no_burst_of_others(steady, others, clients):
    arrival, sender, took = served(BACKGROUND, (steady, 0, 120), *others, seconds=180)

    before, began = harm_s(
        demand(arrival, sender, took, clients), [1], list(range(2, 2 + len(others)))
    )

    assert before < 20
    assert began > 500


def test_whoever_grows_is_the_cause_and_not_whoever_is_steady():
    """It is a few per cent more than the server can do: both together fill it."""
    arrival, sender, took = served(
        BACKGROUND, (1_200, 0, 300), (3_000, 0, 100), (3_500, 100, 160), (4_000, 160, 300)
    )
    grows = np.minimum(sender, 2)

    steady, growing = harm_s(demand(arrival, grows, took), [1], [2])

    assert steady < 20
    assert growing > 5_000


def test_nobody_causes_the_queue_after_a_time_without_service():
    """All requests of 20 s were held, and arrive within a second."""
    rates = (200, 1_000, 2_000)
    parts = [
        *((rate, 0, 60) for rate in rates),
        *((20 * rate, 80, 81) for rate in rates),
        *((rate, 81, 200) for rate in rates),
    ]
    arrival, sender, took = served(*parts)
    held = demand(arrival, sender % len(rates), took)

    assert max(harm_s(held, [1], [2], [1, 2])) < 60


def test_senders_that_need_each_other_to_fill_the_server_are_all_harmful():
    arrival, sender, took = served(BACKGROUND, (3_500, 20, 60), (2_500, 20, 60))

    assert min(harm_s(demand(arrival, sender, took), [1], [2])) > 1_000


def test_many_small_senders_are_harmful_as_a_group_only():
    arrival, sender, took = served(BACKGROUND, *[(300, 20, 30)] * 50)

    crowd, one = harm_s(demand(arrival, sender, took), range(1, 51), [7])

    assert crowd > 100
    assert one < 1


def test_two_storms_that_each_block_the_server_are_both_harmful():
    arrival, sender, took = served(BACKGROUND, (20_000, 20, 30), (20_000, 20, 30))

    both = harm_s(demand(arrival, sender, took), [1], [2])

    assert min(both) > 1_000


def test_the_waiting_of_a_users_own_jobs_is_no_harm():
    arrival, sender, took = served((200, 0, 120), (200, 0, 120), (15_000, 20, 30))
    owners = ["alice", "bob", "bob"]

    (all_others,) = harm_s(demand(arrival, sender, took), [2])
    (other_users,) = harm_s(demand(arrival, sender, took), [2], owners=owners)

    assert other_users == pytest.approx(all_others / 2, rel=0.05)


def test_waiting_for_locks_is_no_queue():
    arrival, sender, took = served(BACKGROUND, (50, 20, 80))
    took = np.where(sender == 1, took + 0.5, took)

    assert harm_s(demand(arrival, sender, took), [1]) == [0]


def test_a_sender_at_its_limit_wished_more_than_it_sent():
    arrival, sender, took = at_limit()

    (harm,) = harm_s(demand(arrival, sender, took, clients=60.0), [1])

    assert harm == pytest.approx(spared_s(arrival, sender, 1), rel=0.25)


@pytest.mark.parametrize("error", [0.88, 1.12])
def test_usual_times_that_do_not_fit_a_mix_hide_no_storm(error):
    arrival, sender, took = at_limit()
    counted = demand(arrival, sender, took, clients=60.0)
    wrong = replace(counted, work_s=error * counted.work_s, served_s=error * counted.served_s)

    (harm,) = harm_s(at_capacity(wrong, CAPACITY_S), [1])

    assert harm == pytest.approx(spared_s(arrival, sender, 1), rel=0.25)


def test_the_plateau_is_the_work_of_busy_seconds():
    of_storm = demand(*served(BACKGROUND, (15_000, 20, 30)))
    calm = demand(*served(BACKGROUND))

    assert plateau(of_storm).value == pytest.approx(CAPACITY_S, rel=0.02)
    assert plateau(calm) is None


def rows_of(*seconds):
    """Return requests: (second, sender, work, time)."""
    rows = [
        (START + at * SECOND, sender, 100.0, work_s * 1e6, work_s * 1e6, took_s * 1e6, 1.0, 1.0)
        for at, sender, work_s, took_s in seconds
    ]
    return Demand.of(pl.DataFrame(rows, REQUESTS, orient="row"), SECOND)


def test_only_known_seconds_show_how_busy_a_server_can_be():
    """Hours without slow seconds, and a lock convoy with a tenth of the load for longer."""
    storm = [(at, "a", 1.0, 8.0) for at in range(60)]
    convoy = [(36_000 + at, "b", 0.1, 8.0) for at in range(120)]

    shown = plateau(rows_of(*storm, *convoy))

    assert shown.value == pytest.approx(1.0, rel=0.02)
    assert shown.requests[0] == pytest.approx(100, rel=0.02)  # of the storm, not of both


def test_queues_that_contradict_each_other_show_no_capacity():
    """No kind of them has most of the work."""
    fast = [(at, "a", 1.0, 20.0) for at in range(10)]
    slow = [(100 + at, "a", 0.6, 20.0) for at in range(15)]
    slowest = [(200 + at, "a", 0.4, 20.0) for at in range(20)]

    assert plateau(rows_of(*fast, *slow, *slowest)) is None


def test_a_queue_of_less_work_than_without_waiting_shows_no_capacity():
    """Requests of the storm take more work than usual: whoever is steady seems to do most of it."""
    calm = [(at, "steady", 0.44, 0.5) for at in range(60)]
    storm = [
        (at, name, work_s, 8.0)
        for at in range(60, 90)
        for name, work_s in (("steady", 0.3), ("b", 0.05))
    ]

    assert plateau(rows_of(*storm)) is not None
    assert plateau(rows_of(*calm, *storm)) is None


def test_requests_that_are_cheaper_than_usual_do_not_hide_later_storms():
    """For some seconds, the server seems to do five times its work."""
    arrival, sender, took = served(BACKGROUND, (15_000, 20, 30))
    storm = demand(arrival, sender, took)
    cheap = np.ones((len(storm.work_s), 1))
    cheap[25:28] = 5.0
    seeming = replace(storm, work_s=cheap * storm.work_s, served_s=cheap * storm.served_s)

    capacity = plateau(seeming)
    (harm,) = harm_s(at_capacity(storm, capacity.value), [1])

    assert capacity.value == pytest.approx(CAPACITY_S, rel=0.05)
    assert harm == pytest.approx(spared_s(arrival, sender, 1), rel=0.05)


@pytest.mark.parametrize(("at", "length"), [(20.0, 0.1), (20.3, 0.2), (20.9, 0.5)])
def test_a_burst_within_a_second_shows_the_capacity(at, length):
    chance = np.random.default_rng(1)
    arrival = np.concatenate([chance.random(24_000) * 120, at + chance.random(40_000) * length])
    order = np.argsort(arrival)
    sender = np.repeat([0, 1], [24_000, 40_000])[order]
    arrival = arrival[order]
    burst = demand(arrival, sender, ends(arrival) - arrival)

    capacity = plateau(burst)
    (harm,) = harm_s(at_capacity(burst, capacity.value), [1])

    assert capacity.value == pytest.approx(CAPACITY_S, rel=0.1)
    assert harm == pytest.approx(spared_s(arrival, sender, 1), rel=0.1)


def test_a_sender_without_work_harms_nobody():
    of_demand = rows_of(*[(at, "a", 1.0, 8.0) for at in range(60)], (5, "idle", 0.0, 0.2))

    assert not harms(of_demand, [Group(*[np.array([False, True])] * 2)], ["a", "idle"], 1.0)


@settings(max_examples=30)
@given(
    senders=st.lists(
        st.tuples(st.integers(50, 8_000), st.integers(0, 50), st.integers(1, 30)),
        min_size=2, max_size=5,
    ),
    seed=st.integers(0, 99),
)  # fmt: skip
def test_nobody_harms_others_by_more_than_they_waited(senders, seed):
    arrival, sender, took = served(
        BACKGROUND, *[(rate, begin, begin + length) for rate, begin, length in senders], seed=seed
    )
    of_demand = demand(arrival, sender, took)

    for number, harm in enumerate(harm_s(of_demand, *[[n] for n in range(len(senders) + 1)])):
        waited = took[sender != number].sum()
        assert 0 <= harm <= waited + 1e-6
