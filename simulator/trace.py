"""The RPC trace of some minutes: every operation becomes a request in the server's queue."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simulator import mds
from simulator.activity import MDT_KINDS, Source
from simulator.clock import MICROSECONDS
from simulator.jobs import Ints
from simulator.server_log import Served

BIN_S = 10
# Which request an operation is. mknod comes with its open; a rename counts where it happens.
_OPCODE_OF_KIND = {
    "open": mds.LDLM_ENQUEUE,
    "close": mds.MDS_CLOSE,
    "link": mds.MDS_REINT,
    "unlink": mds.MDS_REINT,
    "mkdir": mds.MDS_REINT,
    "rmdir": mds.MDS_REINT,
    "getattr": mds.LDLM_ENQUEUE,
    "setattr": mds.MDS_REINT,
    "getxattr": mds.MDS_GETXATTR,
    "setxattr": mds.MDS_REINT,
    "statfs": mds.MDS_STATFS,
    "sync": mds.MDS_SYNC,
    "samedir_rename": mds.MDS_REINT,
    "crossdir_rename": mds.MDS_REINT,
}
_GETATTRS_WITHOUT_INTENT = 0.06
_CANCELS_PER_ENQUEUE = 0.016
_PINGS_PER_S = 12


@dataclass(frozen=True)
class Requests:
    """Requests on their way to the server; arrays of shape (n,)."""

    arrival_us: Ints
    opcode: Ints
    client: Ints
    source: Ints  # index into the sources; -1: a ping


def requests(
    sources: Sequence[Source],
    start: int,
    end: int,
    node_count: int,
    rng: np.random.Generator,
    *,
    bin_s: int = BIN_S,
) -> Requests:
    """Return what the sources and all nodes send in ``[start, end)``, in order of arrival.

    Inside a bin, requests come at random; the time asked for is a multiple of it.
    """
    active = [n for n, s in enumerate(sources) if s.start < end and s.end > start]
    bins = np.arange(start, end + 1, bin_s)
    parts = [_of_source(n, sources[n], bins, rng) for n in active]
    parts.append(_pings(start, end, node_count, rng))
    arrival_us, opcode, client, source = (
        np.concatenate(columns) for columns in zip(*parts, strict=True)
    )
    order = np.argsort(arrival_us, kind="stable")
    return Requests(arrival_us[order], opcode[order], client[order], source[order])


def _of_source(
    number: int, source: Source, bins: Ints, rng: np.random.Generator
) -> tuple[Ints, ...]:
    operations = np.diff(source.mdt_counts(bins), axis=0)
    columns = [
        (code, operations[:, MDT_KINDS.index(kind)]) for kind, code in _OPCODE_OF_KIND.items()
    ]
    getattrs = operations[:, MDT_KINDS.index("getattr")]
    enqueues = getattrs + operations[:, MDT_KINDS.index("open")]
    columns += [
        (mds.MDS_READPAGE, rng.binomial(getattrs, source.readpages_per_getattr)),
        (mds.LDLM_CANCEL, rng.binomial(enqueues, _CANCELS_PER_ENQUEUE)),
    ]
    counts = np.array([count for _, count in columns])  # (columns, bins)
    opcode = np.repeat([code for code, _ in columns], counts.sum(axis=1))
    bin_start = np.repeat(np.tile(bins[:-1], len(columns)), counts.ravel())
    size = len(opcode)
    bin_us = int(bins[1] - bins[0]) * MICROSECONDS
    plain = (opcode == mds.LDLM_ENQUEUE) & (rng.random(size) < _GETATTRS_WITHOUT_INTENT)
    return (
        bin_start * MICROSECONDS + rng.integers(bin_us, size=size),
        np.where(plain, mds.MDS_GETATTR, opcode),
        rng.choice(source.clients, size),
        np.full(size, number),
    )


def _pings(start: int, end: int, node_count: int, rng: np.random.Generator) -> tuple[Ints, ...]:
    size = _PINGS_PER_S * (end - start)
    return (
        rng.integers(start * MICROSECONDS, end * MICROSECONDS, size=size),
        np.full(size, mds.OBD_PING),
        rng.integers(node_count, size=size),
        np.full(size, -1),
    )


def serve(
    asked: Requests,
    sources: Sequence[Source],
    knee_per_s: float,
    rng: np.random.Generator,
    *,
    threads: mds.Threads | None = None,
) -> tuple[Served, Ints]:
    """Send requests through the server; return them in order of their ends, with their sources."""
    dispatch_us = mds.dispatch_times(len(asked.opcode), rng)
    ready_us = asked.arrival_us + dispatch_us
    order = np.argsort(ready_us, kind="stable")
    ready_us, dispatch_us = ready_us[order], dispatch_us[order]
    opcode, source = asked.opcode[order], asked.source[order]
    blocked_share = np.array([one.blocked_share for one in sources] + [0.0])
    service_us = mds.under_pressure(ready_us, mds.service_times(opcode, rng), opcode, knee_per_s)
    service_us += mds.lock_waits(opcode, blocked_share[source], rng)
    in_flight = {n: one.in_flight for n, one in enumerate(sources) if one.in_flight is not None}
    run = mds.serve(ready_us, service_us, opcode, source, in_flight, threads=threads)
    end_us = run.start_us + service_us
    served = Served(
        end_us=end_us,
        service_us=service_us,
        wait_us=run.start_us - run.sent_us + dispatch_us,
        opcode=opcode,
        client=asked.client[order],
        thread=run.thread,
    )
    by_end = np.argsort(end_us, kind="stable")
    return served.take(by_end), source[by_end]
