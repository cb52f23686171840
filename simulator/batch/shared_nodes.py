"""The analysis cluster: jobs request cores and share nodes."""

import heapq

import numpy as np

from simulator.batch.jobs import Ints, Job
from simulator.site import ANALYSIS_NODE_COUNT, CORES_PER_NODE

_START_DELAY_S = 7


def run(jobs: list[Job], opens: int, closes: int) -> None:
    """Fill in the starts, ends and nodes of jobs in order of submission.

    The fullest nodes are used first, so most jobs share theirs. A job that does not fit waits until
    another job ends (there is nearly always space).
    """
    free = np.full(ANALYSIS_NODE_COUNT, CORES_PER_NODE)
    ends: list[tuple[int, int, Job]] = []
    for number, job in enumerate(jobs):
        now = max(job.submitted, opens) + _START_DELAY_S
        while ends and (ends[0][0] <= now or len(_roomy(free, job)) < job.node_count):
            ended, _, other = heapq.heappop(ends)
            free[other.nodes] += other.cores_per_node
            now = max(now, ended)
        if now >= closes:
            continue
        room = _roomy(free, job)
        fullest = room[np.argsort(free[room], kind="stable")]
        job.started = now
        job.nodes = np.sort(fullest[: job.node_count])
        free[job.nodes] -= job.cores_per_node
        heapq.heappush(ends, (now + job.runtime_s, number, job))
        if now + job.runtime_s < closes:
            job.ended = now + job.runtime_s


def _roomy(free: Ints, job: Job) -> Ints:
    return np.flatnonzero(free >= job.cores_per_node)
