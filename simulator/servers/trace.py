"""The RPC trace of some minutes: each operation becomes a request in the server's queue."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from simulator.activity import MDT_KINDS, Source
from simulator.batch.jobs import Ints
from simulator.clock import MICROSECONDS
from simulator.servers import mds
from simulator.servers.server_log import Served

BIN_S = 10
# Request of each operation. mknod comes with its open; a rename counts where it occurs.
OPCODE_OF_KIND = {
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
    kind: Ints  # of its operation, index into MDT_KINDS; -1: none


def requests(
    sources: Sequence[Source],
    start: int,
    end: int,
    node_count: int,
    rng: np.random.Generator,
    *,
    bin_s: int = BIN_S,
) -> Requests:
    """Return the requests of the sources and all nodes in ``[start, end)``, in order of arrival.

    Arrivals inside a bin are random; the interval is a multiple of a bin. Without nodes there are
    no pings.
    """
    active = [n for n, s in enumerate(sources) if s.start < end and s.end > start]
    bins = np.arange(start, end + 1, bin_s)
    parts = [_of_source(n, sources[n], bins, rng) for n in active]
    if node_count:
        parts.append(_pings(start, end, node_count, rng))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    return Requests(*(column[order] for column in columns))


def _of_source(
    number: int, source: Source, bins: Ints, rng: np.random.Generator
) -> tuple[Ints, ...]:
    bin_us = int(bins[1] - bins[0]) * MICROSECONDS
    first, last = np.searchsorted(bins, (source.start, source.end))
    bins = bins[max(first - 1, 0) : last + 1]  # with activity
    operations = np.diff(source.mdt_counts(bins), axis=0)
    kinds = [MDT_KINDS.index(kind) for kind in OPCODE_OF_KIND]
    columns = [
        (code, operations[:, kind])
        for kind, code in zip(kinds, OPCODE_OF_KIND.values(), strict=True)
    ]
    getattrs = operations[:, MDT_KINDS.index("getattr")]
    enqueues = getattrs + operations[:, MDT_KINDS.index("open")]
    columns += [
        (mds.MDS_READPAGE, rng.binomial(getattrs, source.readpages_per_getattr)),
        (mds.LDLM_CANCEL, rng.binomial(enqueues, _CANCELS_PER_ENQUEUE)),
    ]
    counts = np.array([count for _, count in columns])  # (columns, bins)
    opcode = np.repeat([code for code, _ in columns], counts.sum(axis=1))
    kind = np.repeat([*kinds, -1, -1], counts.sum(axis=1))
    bin_start = np.repeat(np.tile(bins[:-1], len(columns)), counts.ravel())
    size = len(opcode)
    plain = (opcode == mds.LDLM_ENQUEUE) & (rng.random(size) < _GETATTRS_WITHOUT_INTENT)
    return (
        bin_start * MICROSECONDS + rng.integers(bin_us, size=size),
        np.where(plain, mds.MDS_GETATTR, opcode),
        rng.choice(source.clients, size),
        np.full(size, number),
        kind,
    )


def _pings(start: int, end: int, node_count: int, rng: np.random.Generator) -> tuple[Ints, ...]:
    size = _PINGS_PER_S * (end - start)
    return (
        rng.integers(start * MICROSECONDS, end * MICROSECONDS, size=size),
        np.full(size, mds.OBD_PING),
        rng.integers(node_count, size=size),
        np.full(size, -1),
        np.full(size, -1),
    )


@dataclass(frozen=True)
class Queue:
    """Requests at the server, with all random values; arrays of shape (n,)."""

    ready_us: Ints  # ascending
    dispatch_us: Ints
    idle_us: Ints  # service time on an idle server
    locked_us: Ints  # waiting time for others' locks
    opcode: Ints
    client: Ints
    source: Ints

    def take(self, rows: Ints) -> "Queue":
        """Return the requests of `rows`, in that order."""
        return Queue(*(getattr(self, column.name)[rows] for column in fields(self)))

    def run(
        self,
        sources: Sequence[Source],
        knee_per_s: float,
        *,
        threads: mds.Threads | None = None,
    ) -> tuple[Ints, mds.Run]:
        """Return the service times, and the service of each request."""
        service_us = self.locked_us + mds.under_pressure(
            self.ready_us, self.idle_us, self.opcode, knee_per_s
        )
        in_flight = {
            n: sender.in_flight for n, sender in enumerate(sources) if sender.in_flight is not None
        }
        return service_us, mds.serve(
            self.ready_us, service_us, self.opcode, self.source, in_flight, threads=threads
        )

    def served(self, service_us: Ints, run: mds.Run) -> tuple[Served, Ints]:
        """Return the requests in order of their ends, with their sources."""
        end_us = run.start_us + service_us
        served = Served(
            end_us=end_us,
            service_us=service_us,
            wait_us=run.start_us - run.sent_us + self.dispatch_us,
            opcode=self.opcode,
            client=self.client,
            thread=run.thread,
        )
        by_end = np.argsort(end_us, kind="stable")
        return served.take(by_end), self.source[by_end]


def queue(sent: Requests, sources: Sequence[Source], rng: np.random.Generator) -> Queue:
    """Queue requests for the server's threads."""
    dispatch_us = mds.dispatch_times(len(sent.opcode), rng)
    ready_us = sent.arrival_us + dispatch_us
    order = np.argsort(ready_us, kind="stable")
    opcode, source = sent.opcode[order], sent.source[order]
    blocked_share = np.array([sender.blocked_share for sender in sources] + [0.0])
    return Queue(
        ready_us=ready_us[order],
        dispatch_us=dispatch_us[order],
        idle_us=mds.service_times(opcode, rng),
        locked_us=mds.lock_waits(opcode, blocked_share[source], rng),
        opcode=opcode,
        client=sent.client[order],
        source=source,
    )


def serve(
    sent: Requests,
    sources: Sequence[Source],
    knee_per_s: float,
    rng: np.random.Generator,
    *,
    threads: mds.Threads | None = None,
) -> tuple[Served, Ints]:
    """Serve requests; return them in order of their ends, with their sources."""
    line = queue(sent, sources, rng)
    return line.served(*line.run(sources, knee_per_s, threads=threads))
