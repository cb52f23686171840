"""The metadata server's queue."""

import numpy as np
import pytest

from simulator.servers import mds


def enqueues(arrival_us, service_us):
    opcode = np.full(len(arrival_us), mds.LDLM_ENQUEUE)
    run = mds.serve(np.array(arrival_us), np.array(service_us), opcode)
    return run.start_us, run.thread


def test_requests_start_without_delay_while_threads_are_free():
    start, thread = enqueues([0] * mds.MAIN.size, [100] * mds.MAIN.size)

    assert start.tolist() == [0] * mds.MAIN.size
    assert sorted(thread) == list(range(mds.MAIN.size))


def test_the_next_request_waits_for_the_first_free_thread():
    busy = mds.MAIN.size
    start, thread = enqueues([0] * busy + [10], [100] * (busy - 1) + [40, 5])

    assert start[-1] == 40
    assert thread[-1] == thread[-2]


def test_services_do_not_wait_for_each_other():
    busy = mds.MAIN.size
    opcode = np.array([mds.LDLM_ENQUEUE] * busy + [mds.MDS_CLOSE])
    run = mds.serve(np.zeros(busy + 1, dtype=int), np.full(busy + 1, 100), opcode)

    assert run.start_us[-1] == 0
    assert mds.THREAD_NAMES[run.thread[-1]].startswith("mdt_rdpg")


def test_conflicting_enqueues_occupy_threads_longer():
    chance = np.random.default_rng(1)
    opcode = np.full(10_000, mds.LDLM_ENQUEUE)

    assert mds.service_times(opcode, chance).mean() < 60
    assert mds.lock_waits(opcode, np.ones(10_000), chance).mean() > 50_000
    assert not mds.lock_waits(opcode, np.zeros(10_000), chance).any()


def test_a_client_at_its_limit_sends_after_a_response():
    opcode = np.full(3, mds.LDLM_ENQUEUE)
    run = mds.serve(np.array([0, 1, 2]), np.full(3, 100), opcode, np.zeros(3, int), {0: 2})

    assert run.sent_us.tolist() == run.start_us.tolist() == [0, 1, 100]


@pytest.mark.parametrize("knee", [8_000, 30_000])
def test_the_main_service_has_the_requested_capacity(knee):
    chance = np.random.default_rng(1)
    arrivals = np.sort(chance.integers(3_000_000, size=6 * knee))  # twice its capacity
    opcode = np.full(len(arrivals), mds.LDLM_ENQUEUE)

    alone = mds.service_times(opcode, chance)
    pressed = mds.under_pressure(arrivals, alone, opcode, knee)
    run = mds.serve(arrivals, pressed, opcode)

    done = np.bincount((run.start_us + pressed) // 1_000_000)
    assert done[1:5] == pytest.approx([knee] * 4, rel=0.05)
    assert (run.start_us - run.sent_us).max() > 1_000_000


def test_requests_take_longer_under_load():
    chance = np.random.default_rng(1)
    waits, services = [], []
    for per_s in (1_000, 5_000, 10_000, 15_000, 18_000):
        arrivals = np.sort(chance.integers(3_000_000, size=3 * per_s))
        opcode = np.full(len(arrivals), mds.LDLM_ENQUEUE)
        pressed = mds.under_pressure(arrivals, mds.service_times(opcode, chance), opcode, 20_000)
        run = mds.serve(arrivals, pressed, opcode)
        services.append(pressed.mean())
        waits.append((run.start_us - run.sent_us).mean())

    assert services == sorted(services)
    assert services[-1] > 5 * services[0]
    assert max(waits) < 100  # below the knee


def test_a_knee_above_an_idle_servers_capacity_is_refused():
    with pytest.raises(ValueError, match="16 threads cannot do"):
        mds.under_pressure(np.array([0]), np.array([1]), np.array([mds.LDLM_ENQUEUE]), 1e6)
