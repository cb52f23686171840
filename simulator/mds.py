"""The metadata server: thread pools that serve requests first come, first served."""

import heapq
from dataclasses import dataclass

import numpy as np

from simulator.jobs import Floats, Ints

MDS_GETATTR = 33
MDS_CLOSE = 35
MDS_REINT = 36
MDS_READPAGE = 37
MDS_STATFS = 41
MDS_SYNC = 44
MDS_GETXATTR = 49
LDLM_ENQUEUE = 101
LDLM_CANCEL = 103
OBD_PING = 400


@dataclass(frozen=True)
class Pool:
    """A service of the MDS: threads of one name base, split over two CPU partitions."""

    base: str
    first_thread: int  # its threads are numbered from here on, over all pools
    size: int

    def names(self) -> list[str]:
        """Return the thread names, as the kernel calls them."""
        return [f"{self.base}{n % 2:02d}_{n // 2:03d}" for n in range(self.size)]


MAIN = Pool("mdt", 0, 16)
READPAGE = Pool("mdt_rdpg", 16, 12)  # clients send close here, too
CANCEL = Pool("ldlm_cn", 28, 8)
POOLS = (MAIN, READPAGE, CANCEL)
THREAD_NAMES = [name for pool in POOLS for name in pool.names()]

_POOL_OF_OPCODE = {MDS_CLOSE: READPAGE, MDS_READPAGE: READPAGE, LDLM_CANCEL: CANCEL}


def pools_of(opcode: Ints) -> tuple[Ints, Ints]:
    """Return the first thread and the size of the pool that serves each opcode."""
    codes, inverse = np.unique(opcode, return_inverse=True)
    pools = [_POOL_OF_OPCODE.get(code, MAIN) for code in codes.tolist()]
    first_thread = np.array([pool.first_thread for pool in pools])[inverse]
    size = np.array([pool.size for pool in pools])[inverse]
    return first_thread, size


# Service time of a request that finds all it needs in memory: median in us, spread of its
# logarithm, least and greatest.
_SERVICE_US = {
    MDS_GETATTR: (20, 0.30, 14, 4_000),
    MDS_CLOSE: (21, 0.35, 14, 20_000),
    MDS_REINT: (128, 0.45, 60, 90_000),
    MDS_READPAGE: (270, 0.35, 150, 20_000),
    MDS_STATFS: (18, 0.25, 9, 2_000),
    MDS_SYNC: (900, 0.60, 150, 200_000),
    MDS_GETXATTR: (20, 0.30, 14, 4_000),
    LDLM_ENQUEUE: (37, 0.45, 12, 20_000),
    LDLM_CANCEL: (15, 0.25, 9, 1_000),
    OBD_PING: (6, 0.30, 3, 400),
}
# An enqueue that conflicts with another client's lock keeps its thread until that is given back.
_BLOCKED_MEAN_US = 72_000
_BLOCKED_SPREAD = 0.8
_DISPATCH_US = (13, 0.7, 4, 5_000)  # from the network to a thread, with nobody before


def service_times(opcode: Ints, blocked_share: Floats, rng: np.random.Generator) -> Ints:
    """Return how long each request keeps its thread, in microseconds.

    Args:
        opcode: shape (n,).
        blocked_share: shape (n,), how likely each is to wait for a lock, if it is an enqueue.
        rng: the source of chance.
    """
    service_us = np.empty(len(opcode), dtype=np.int64)
    for code in np.unique(opcode).tolist():
        same = np.flatnonzero(opcode == code)
        service_us[same] = _drawn(_SERVICE_US[code], len(same), rng)
    blocked = (opcode == LDLM_ENQUEUE) & (rng.random(len(opcode)) < blocked_share)
    waits_us = rng.lognormal(
        np.log(_BLOCKED_MEAN_US) - _BLOCKED_SPREAD**2 / 2, _BLOCKED_SPREAD, size=blocked.sum()
    )
    service_us[blocked] += waits_us.astype(np.int64)
    return service_us


def dispatch_times(size: int, rng: np.random.Generator) -> Ints:
    """Return how long requests take to a thread when no other is before them."""
    return _drawn(_DISPATCH_US, size, rng)


def _drawn(
    distribution: tuple[float, float, int, int], size: int, rng: np.random.Generator
) -> Ints:
    median, spread, least, greatest = distribution
    times = np.rint(median * rng.lognormal(0, spread, size=size)).astype(np.int64)
    return np.clip(times, least, greatest)


def serve(arrival_us: Ints, service_us: Ints, opcode: Ints) -> tuple[Ints, Ints]:
    """Serve requests in order of arrival, each in the pool of its opcode.

    Args:
        arrival_us: shape (n,), ascending.
        service_us: shape (n,), how long each keeps its thread.
        opcode: shape (n,).

    Returns:
        When each starts (never before its arrival) and the number of the thread that serves it.
    """
    start_us = np.empty_like(arrival_us)
    thread = np.empty_like(arrival_us)
    first_thread, _ = pools_of(opcode)
    for pool in POOLS:
        mine = np.flatnonzero(first_thread == pool.first_thread)
        start_us[mine], thread[mine] = _serve_in(pool, arrival_us[mine], service_us[mine])
    return start_us, thread


def _serve_in(pool: Pool, arrival_us: Ints, service_us: Ints) -> tuple[list[int], list[int]]:
    free = [(0, pool.first_thread + n) for n in range(pool.size)]  # a heap of (free from, thread)
    starts: list[int] = []
    threads: list[int] = []
    for arrival, service in zip(arrival_us.tolist(), service_us.tolist(), strict=True):
        free_from, thread = free[0]
        start = max(arrival, free_from)
        heapq.heapreplace(free, (start + service, thread))
        starts.append(start)
        threads.append(thread)
    return starts, threads
