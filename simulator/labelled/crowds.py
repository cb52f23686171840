"""Many jobs that are harmless one by one, and jobs that start together."""

from collections.abc import Iterator

import numpy as np

from simulator.clock import MINUTE_S
from simulator.labelled.heavy import most_requests
from simulator.labelled.ordinary import MIX, reads_of
from simulator.labelled.play import Play, between, phase, shares

CRON_USERS = 50
_CRON_S = 8  # of the server's capacity, all of a strong crowd's jobs
_LARGEST_START = 6_000  # nodes; leaves room for two storms
_STARTS_PER_S = (2, 20)  # of the scheduler


def array(chance: np.random.Generator, capacity_per_s: float, strength: float) -> Iterator[Play]:
    """Yield the one-node jobs of an array, which all do the same at the same time."""
    jobs = int(between(chance, 30, 300))
    per_s = 3 * strength * capacity_per_s
    lasts_s = int(max(min(between(chance, 20, 300), most_requests(capacity_per_s) / per_s), 5))
    each = min(per_s * lasts_s, most_requests(capacity_per_s)) / jobs
    runtime_s = lasts_s + int(chance.integers(3, 10)) * MINUTE_S
    for _ in range(jobs):
        begin = 5 + int(jobs * chance.random() / chance.uniform(*_STARTS_PER_S))
        operations = shares(each * chance.uniform(0.7, 1.3), MIX)
        yield Play(
            "array of many jobs",
            "array_task",
            1,
            runtime_s + begin,
            tuple(phase(chance, begin, begin + lasts_s, operations, reads=reads_of(operations))),
        )


def campaign(chance: np.random.Generator, capacity_per_s: float, strength: float) -> Iterator[Play]:
    """Yield the jobs of a project's users, each at a moderate rate."""
    jobs = int(chance.integers(30, 90))
    runtime_s = int(chance.integers(12, 20)) * MINUTE_S
    each = min(strength * capacity_per_s * runtime_s, most_requests(capacity_per_s)) / jobs
    for _ in range(jobs):
        operations = shares(each * chance.uniform(0.5, 1.5), MIX)
        yield Play(
            "campaign of a project",
            "reprocess.sh",
            int(chance.integers(1, 9)),
            runtime_s,
            tuple(phase(chance, 20, runtime_s - 30, operations, reads=reads_of(operations))),
        )


def cron_jobs(
    chance: np.random.Generator, capacity_per_s: float, strength: float
) -> Iterator[Play]:
    """Yield jobs of as many users, which all begin at the same second: each does little."""
    runtime_s = int(chance.integers(4, 9)) * MINUTE_S
    each = min(_CRON_S * strength * capacity_per_s, most_requests(capacity_per_s)) / CRON_USERS
    for _ in range(CRON_USERS):
        operations = shares(each * chance.uniform(0.7, 1.3), MIX)
        lasts_s = int(chance.integers(2, 8))
        yield Play(
            "cron jobs of many users",
            "nightly.sh",
            1,
            runtime_s,
            tuple(phase(chance, 5, 5 + lasts_s, operations, reads=reads_of(operations))),
        )


def large_start(chance: np.random.Generator) -> Play:
    """Start on thousands of nodes: each opens the program, its libraries and its input."""
    nodes = int(between(chance, 2_000, _LARGEST_START))
    files = nodes * int(chance.integers(3, 16))
    lasts_s = int(between(chance, 3, 40))
    runtime_s = int(chance.integers(6, 11)) * MINUTE_S
    operations = {"open": files, "close": files, "getattr": files / 2}
    return Play(
        "start on thousands of nodes",
        "xgc_init",
        nodes,
        runtime_s,
        tuple(phase(chance, 5, 5 + lasts_s, operations, reads=reads_of(operations))),
        busy_share=0.9,
    )
