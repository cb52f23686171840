"""The metadata server: thread pools that serve requests first come, first served.

All threads share the server's processors, so requests take factor under load. Beyond the knee,
requests wait for a thread.
"""

import heapq
from dataclasses import dataclass

import numpy as np

from simulator.batch.jobs import Floats, Ints
from simulator.clock import MICROSECONDS

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
        """Return the thread names of the kernel."""
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


# Service time of a request with all data in memory: median in us, spread of its logarithm,
# minimum and maximum.
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
MAIN_MEAN_US = 41  # of the main service's requests, in the usual mix
_PRESSURE_BIN_US = 1_000_000
# An enqueue that conflicts with another client's lock occupies its thread until that is released.
BLOCKED_MEAN_US = 72_000
_BLOCKED_SPREAD = 0.8
_DISPATCH_US = (13, 0.7, 4, 5_000)  # from the network to a thread, without a queue


def mean_us(opcode: int) -> float:
    """Return the mean service time of a request on an idle server, in microseconds."""
    median, spread, _, _ = _SERVICE_US[opcode]
    return float(median * np.exp(spread**2 / 2))


def mean_work_us(mix: dict[int, float]) -> float:
    """Return the mean service time of a mix in the main service of an idle server."""
    shares = {code: share for code, share in mix.items() if _POOL_OF_OPCODE.get(code, MAIN) is MAIN}
    return sum(share * mean_us(code) for code, share in shares.items()) / sum(mix.values())


def service_times(opcode: Ints, rng: np.random.Generator) -> Ints:
    """Return each request's service time on an idle server, in microseconds."""
    service_us = np.empty(len(opcode), dtype=np.int64)
    for code in np.unique(opcode).tolist():
        same = np.flatnonzero(opcode == code)
        service_us[same] = _drawn(_SERVICE_US[code], len(same), rng)
    return service_us


def under_pressure(ready_us: Ints, service_us: Ints, opcode: Ints, knee_per_s: float) -> Ints:
    """Return service times with requests that share the processors.

    Args:
        ready_us: shape (n,), ascending.
        service_us: shape (n,), on an idle server.
        opcode: shape (n,).
        knee_per_s: capacity of the main service for the usual mix, requests per second.

    Raises:
        ValueError: the knee exceeds the capacity of an idle server.
    """
    slowdown = (
        MAIN.size * MICROSECONDS / (knee_per_s * MAIN_MEAN_US)
    )  # times factor, all threads busy
    if slowdown < 1:
        raise ValueError(f"{MAIN.size} threads cannot do {knee_per_s:,.0f} requests a second")
    moment = (ready_us - ready_us[0]) // _PRESSURE_BIN_US
    main = pools_of(opcode)[0] == MAIN.first_thread
    work_us = np.bincount(moment, weights=service_us * main)
    load = work_us / _PRESSURE_BIN_US * slowdown / MAIN.size
    factor = np.clip(1 / np.clip(1 - load, 1 / slowdown, 1), 1, slowdown)
    pressed: Ints = np.rint(service_us * factor[moment]).astype(np.int64)
    return pressed


def lock_waits(opcode: Ints, blocked_share: Floats, rng: np.random.Generator) -> Ints:
    """Return each request's additional time on its thread until others release their locks.

    Args:
        opcode: shape (n,).
        blocked_share: shape (n,), probability of waiting for a lock, if it is an enqueue.
        rng: random generator.
    """
    blocked = (opcode == LDLM_ENQUEUE) & (rng.random(len(opcode)) < blocked_share)
    waits_us = np.zeros(len(opcode), dtype=np.int64)
    waits_us[blocked] = rng.lognormal(
        np.log(BLOCKED_MEAN_US) - _BLOCKED_SPREAD**2 / 2, _BLOCKED_SPREAD, size=blocked.sum()
    ).astype(np.int64)
    return waits_us


def dispatch_times(size: int, rng: np.random.Generator) -> Ints:
    """Return the time of requests to reach a thread without a queue."""
    return _drawn(_DISPATCH_US, size, rng)


def _drawn(
    distribution: tuple[float, float, int, int], size: int, rng: np.random.Generator
) -> Ints:
    median, spread, minimum, maximum = distribution
    times = np.rint(median * rng.lognormal(0, spread, size=size)).astype(np.int64)
    return np.clip(times, minimum, maximum)


class Threads:
    """The threads of all pools, with the time when each is free."""

    def __init__(self) -> None:
        self._free = {
            pool: [(0, pool.first_thread + n) for n in range(pool.size)] for pool in POOLS
        }

    def heap(self, pool: Pool) -> list[tuple[int, int]]:
        """Return a heap of (free from, thread)."""
        return self._free[pool]


@dataclass(frozen=True)
class Run:
    """Service of requests; arrays of shape (n,)."""

    sent_us: Ints  # arrival at the server; delayed if the client's limit was reached
    start_us: Ints  # never before sent_us
    thread: Ints


def serve(
    ready_us: Ints,
    service_us: Ints,
    opcode: Ints,
    source: Ints | None = None,
    in_flight: dict[int, int] | None = None,
    *,
    threads: Threads | None = None,
) -> Run:
    """Serve requests in order of arrival, each in the pool of its opcode.

    Args:
        ready_us: shape (n,), ascending.
        service_us: shape (n,), service time on a thread.
        opcode: shape (n,).
        source: shape (n,), sender.
        in_flight: maximum number of concurrent requests by source, for sources with a limit.
        threads: the threads, busy from earlier requests; None: all idle.
    """
    threads = threads or Threads()
    sent_us, start_us, thread = (np.empty_like(ready_us) for _ in range(3))
    first_thread, _ = pools_of(opcode)
    senders = np.full_like(ready_us, -1) if source is None else source
    for pool in POOLS:
        mine = np.flatnonzero(first_thread == pool.first_thread)
        columns = _serve_in(
            threads.heap(pool),
            ready_us[mine].tolist(),
            service_us[mine].tolist(),
            senders[mine].tolist(),
            in_flight or {},
        )
        sent_us[mine], start_us[mine], thread[mine] = columns
    return Run(sent_us, start_us, thread)


def _serve_in(
    free: list[tuple[int, int]],
    ready_us: list[int],
    service_us: list[int],
    source: list[int],
    in_flight: dict[int, int],
) -> tuple[list[int], list[int], list[int]]:
    ends: dict[int, list[int]] = {sender: [] for sender in in_flight}
    sent = ready_us.copy()
    starts: list[int] = []
    threads: list[int] = []
    for number, (arrival, service, sender) in enumerate(
        zip(ready_us, service_us, source, strict=True)
    ):
        answered = ends.get(sender)
        if answered is not None and len(answered) >= in_flight[sender]:
            arrival = sent[number] = max(arrival, answered[-in_flight[sender]])  # noqa: PLW2901
        free_from, thread = free[0]
        start = arrival if arrival > free_from else free_from  # noqa: FURB136  (millions of times)
        heapq.heapreplace(free, (start + service, thread))
        if answered is not None:
            answered.append(start + service)
        starts.append(start)
        threads.append(thread)
    return sent, starts, threads
