"""Statistics of jobs from RPC traces."""

import pytest

from tests.jobs.polls import MDT
from tests.logs import CLOSE, OPEN, Run, job_stats, rpc

pytestmark = pytest.mark.usefixtures("module_site")


def test_a_trace_gives_rpcs_rates_and_times(jobs, logs, ingest, figures):
    jobs(Run("77", start="12:00", end="13:00"))
    lines = [
        rpc("12:10:00", us=(10, 30)),
        rpc("12:10:01", opcode=CLOSE, us=(50, 60)),
        rpc("12:10:20", us=None),
        rpc("12:10:40", opcode=OPEN, us=(30, 30)),
    ]
    ingest("rpctrace", logs("t", *lines), server="mds1")

    job = figures()

    assert job.metadata_rpcs == 4
    assert job.metadata_rpc_rate == pytest.approx(4 / 40)
    assert job.mean_service_us == pytest.approx((10 + 50 + 30) / 3)
    assert job.max_service_us == 50
    assert job.mean_queue_us == pytest.approx((20 + 10 + 0) / 3)


def test_enqueues_before_the_latest_read_are_counted_separately(jobs, read, logs, ingest, figures):
    jobs(Run("77", start="12:00", end=None))
    enqueues = [rpc(clock, opcode=OPEN) for clock in ("12:09:49", "12:09:50", "12:19:59")]
    ingest("rpctrace", logs("t", *enqueues), server="mds1")

    def enqueue_counts(clock):
        read(clock, job_stats(MDT, {"77": {"open": 5}}, snapshot=clock))
        job = figures()
        return job.lock_enqueues, job.counted_enqueues

    assert [enqueue_counts(clock) for clock in ("12:09", "12:10", "12:20")] == [
        (3, 0),
        (3, 2),
        (3, 3),
    ]


def test_a_traced_job_without_rpcs_has_zero(jobs, logs, ingest, figures):
    jobs(Run("77"))
    assert figures().metadata_rpcs is None

    ingest("rpctrace", logs("t", rpc("12:10", "9@gni"), rpc("12:11", "9@gni")), server="mds1")

    job = figures()
    assert (job.metadata_rpcs, job.metadata_rpc_rate) == (0, 0)


def test_traces_of_object_servers_are_excluded(jobs, logs, ingest, figures):
    jobs(Run("77"))
    ingest("rpctrace", logs("t", rpc("12:10"), rpc("12:11")), server="oss1")

    assert figures().metadata_rpcs is None
