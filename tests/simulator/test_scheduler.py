"""The scheduler on a machine of ten nodes."""

import numpy as np
import pytest

from simulator.batch.jobs import Job, Kind
from simulator.batch.scheduler import Scheduler
from simulator.site import User

ALICE = User("alice", 10_001, "ABC001")
HOUR = 3_600


class Pilots:
    """Keeps a number of one-node jobs present."""

    def __init__(self, count):
        self.count = count

    def next_job(self, now, present):
        return job(1, submitted=now, runtime_s=600) if present < self.count else None


def job(node_count, *, submitted=0, runtime_s=HOUR, limit_s=2 * HOUR, **options):
    return Job(
        number=0,
        user=ALICE,
        name="job",
        queue="batch",
        kind=Kind.SIMULATION,
        node_count=node_count,
        limit_s=limit_s,
        runtime_s=runtime_s,
        submitted=submitted,
        **options,
    )


def run(*jobs, fixed=(), pilots=0, opens=0, closes=10 * HOUR, held_back=0):
    scheduler = Scheduler(10, held_back, opens, closes, np.random.default_rng(1))
    return scheduler.run(jobs, fixed, Pilots(pilots))


def test_jobs_that_fit_together_run_together():
    first, second = job(6), job(4)
    run(first, second)

    assert abs(first.started - second.started) < 120
    assert not set(first.nodes) & set(second.nodes)


def test_a_job_waits_for_nodes():
    first, second = job(6), job(5, submitted=60)
    run(first, second)

    assert second.started >= first.ended == first.started + HOUR


def test_a_small_job_is_backfilled_only_if_it_ends_in_time():
    running = job(6)
    head = job(10, submitted=60)
    short = job(2, submitted=120, limit_s=HOUR)
    long = job(2, submitted=120, limit_s=9 * HOUR)
    run(running, head, short, long)

    assert short.started < running.ended <= head.started < long.started


def test_no_job_starts_before_the_machine_opens():
    early = job(1)
    run(early, opens=HOUR)

    assert early.started > HOUR


def test_a_job_with_a_fixed_start_uses_reserved_nodes():
    fixed = job(3, started=HOUR + 7)
    run(job(7, limit_s=9 * HOUR, runtime_s=9 * HOUR), fixed=[fixed], held_back=3)

    assert fixed.started == HOUR + 7
    assert len(fixed.nodes) == 3


def test_too_few_nodes_for_a_fixed_start_are_an_error():
    with pytest.raises(ValueError, match="3 nodes requested, 2 are free"):
        run(job(8), fixed=[job(3, started=HOUR)], held_back=2)


def test_a_deleted_job_ends_early_or_never_starts():
    running = job(10, runtime_s=5 * HOUR, delete_at=HOUR)
    queued = job(10, submitted=60, delete_at=HOUR)
    run(running, queued)

    assert HOUR < running.ended < HOUR + 60
    assert running.exit_status == 271
    assert queued.started is None


def test_a_campaign_continues_as_its_jobs_end():
    pilots = run(pilots=2, closes=2 * HOUR)

    moments = range(300, 2 * HOUR, 60)
    at_once = [sum(p.started <= m < (p.ended or 9e9) for p in pilots if p.started) for m in moments]
    assert max(at_once) == 2
    assert len(pilots) > 15
