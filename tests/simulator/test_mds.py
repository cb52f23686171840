"""The metadata server's queue."""

import numpy as np

from simulator import mds


def enqueues(arrival_us, service_us):
    opcode = np.full(len(arrival_us), mds.LDLM_ENQUEUE)
    return mds.serve(np.array(arrival_us), np.array(service_us), opcode)


def test_requests_start_at_once_while_threads_are_free():
    start, thread = enqueues([0] * mds.MAIN.size, [100] * mds.MAIN.size)

    assert start.tolist() == [0] * mds.MAIN.size
    assert sorted(thread) == list(range(mds.MAIN.size))


def test_the_next_request_waits_for_the_first_thread_to_be_free():
    busy = mds.MAIN.size
    start, thread = enqueues([0] * busy + [10], [100] * (busy - 1) + [40, 5])

    assert start[-1] == 40
    assert thread[-1] == thread[-2]


def test_services_do_not_wait_for_each_other():
    busy = mds.MAIN.size
    opcode = np.array([mds.LDLM_ENQUEUE] * busy + [mds.MDS_CLOSE])
    start, thread = mds.serve(np.zeros(busy + 1, dtype=int), np.full(busy + 1, 100), opcode)

    assert start[-1] == 0
    assert mds.THREAD_NAMES[thread[-1]].startswith("mdt_rdpg")


def test_conflicting_enqueues_keep_their_threads_much_longer():
    chance = np.random.default_rng(1)
    opcode = np.full(10_000, mds.LDLM_ENQUEUE)

    free = mds.service_times(opcode, np.zeros(10_000), chance)
    blocked = mds.service_times(opcode, np.ones(10_000), chance)
    assert free.mean() < 60
    assert blocked.mean() > 50_000
