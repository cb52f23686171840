"""Lives of a job_stats entry."""

import numpy as np
import pytest

from simulator.activity import MDT_KINDS, Burst, Source, Transfers
from simulator.servers import counters
from simulator.servers.counters import Server

OPEN = MDT_KINDS.index("open")
TEN_MINUTES = 600


def opens(*bursts):
    """Return a source with bursts of (start, end, opens)."""
    return Source(
        "1.titan", np.array([0]), tuple(Burst(start, end, {"open": n}) for start, end, n in bursts)
    )


def sightings(source, polls, remounts=()):
    """Return [(poll time, last update, opens)] of all sightings."""
    return [
        (polls[poll], updated, counts[OPEN])
        for life in counters.mdt_sightings(source, np.array(polls), Server(TEN_MINUTES, remounts))
        for poll, updated, counts in zip(life.polls, life.snapshot_s, life.counts, strict=True)
    ]


def test_counters_increase_in_a_burst_and_stay_constant_afterwards():
    polls = [50, 100, 300, 700, 701]

    assert sightings(opens((0, 100, 10)), polls) == [
        (50, 50, 5),
        (100, 100, 10),
        (300, 100, 10),
        (700, 100, 10),  # ten idle minutes; then it is dropped
    ]


def test_a_source_that_returns_in_time_continues_its_counters():
    assert sightings(opens((0, 100, 10), (700, 800, 5)), [650, 900]) == [
        (650, 100, 10),
        (900, 800, 15),
    ]


def test_a_source_that_returns_late_starts_at_zero():
    assert sightings(opens((0, 100, 10), (701, 800, 5)), [650, 900]) == [
        (650, 100, 10),
        (900, 800, 5),
    ]


def test_a_remount_resets_an_entry_during_a_burst():
    assert sightings(opens((0, 1_000, 1_000)), [300, 500, 600], remounts=[400]) == [
        (300, 300, 300),
        (500, 500, 100),
        (600, 600, 200),
    ]


def test_a_remount_ends_an_idle_entry():
    assert sightings(opens((0, 100, 10)), [150, 250], remounts=[200]) == [(150, 100, 10)]


def test_the_whole_target_counts_operations_without_an_id():
    without_id = Source(None, np.array([0]), (Burst(0, 100, {"open": 7}),))
    totals = counters.mdt_totals(
        [opens((0, 100, 10)), without_id], np.array([100, 300]), Server(TEN_MINUTES, [200])
    )

    assert totals[:, OPEN].tolist() == [17, 0]
    assert not list(counters.mdt_sightings(without_id, np.array([100]), Server(TEN_MINUTES)))


def test_failed_opens_do_not_count_after_an_upgrade():
    source = Source(
        "1.titan", np.array([0]), (Burst(0, 100, {"open": 100, "close": 20}, failed_opens=80),)
    )

    assert source.mdt_counts(np.array([50, 100]))[:, OPEN].tolist() == [50, 100]
    assert source.mdt_counted(np.array([50, 100]), 50)[:, OPEN].tolist() == [50, 60]
    assert source.mdt_counted(np.array([50, 100]), 0)[:, OPEN].tolist() == [10, 20]


@pytest.mark.parametrize("count", [0, 1, 7, 4_001])
def test_requests_are_distributed_over_osts_without_loss(count):
    source = Source(
        "1.titan",
        np.array([0]),
        (Burst(0, 10, {}, writes=Transfers(count, 4_096)),),
        spread=(0.1, 0.2, 0.3, 0.4),
    )

    totals = [int(source.ost_requests(ost, np.array([10]))[1].sum()) for ost in range(4)]
    assert sum(totals) == count
