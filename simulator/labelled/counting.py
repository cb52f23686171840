"""The counters of the servers at each read: by job, of the target, of the service."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from simulator import site
from simulator.activity import MDT_KINDS, OPEN
from simulator.batch.jobs import Floats, Ints
from simulator.clock import HOUR_S, MICROSECONDS, MINUTE_S
from simulator.formats import mds_stats
from simulator.formats.mds_stats import Counter
from simulator.formats.releases import counts_failed_opens
from simulator.labelled.answered import COLUMNS, FAILED_OPENS, Answered, joined
from simulator.labelled.cast import CLIENTS
from simulator.labelled.scene import Scene
from simulator.labelled.service import Service
from simulator.servers import counters, mds, trace
from simulator.servers.counters import NEVER, Entry, Server, Sightings

KEPT_S = 20 * MINUTE_S  # idle entries: longer than the time between reads
_DISPATCH_US = 16  # mean time of a request to a thread without a queue
_MOUNTED_BEFORE_S = 100 * HOUR_S


@dataclass(frozen=True)
class Reads:
    """The content of some reads; lists with an element for each."""

    mdt: list[list[Entry]]
    ost: list[list[Entry]]
    totals: Ints  # (reads, MDT_KINDS), since the start of the server
    slowdowns: Floats  # of the totals' times
    started: list[int]  # of the servers


class Counting:
    """The counters of a scene's servers."""

    def __init__(self, scene: Scene, service: Service) -> None:
        self._scene = scene
        self._service = service
        self._failures_until = NEVER if counts_failed_opens(scene.version) else 0
        self._total = joined(service.sources)
        cleared = dict(zip(scene.senders, service.sources, strict=True))
        self._cleared = {
            cleared[actor.source].job_id: (actor.job.started or 0) + actor.role.cleared_s
            for actor in scene.actors
            if actor.role.cleared_s
        }
        self._by_job_id = list(_by_job_id(service.sources))

    def reads(self, moments: Ints) -> Reads:
        """Return the counters at some times."""
        of_mdt: list[Sightings] = []
        of_ost: list[Sightings] = []
        for source in self._by_job_id:
            server = self._server(self._cleared.get(source.job_id))
            lives = list(counters.mdt_sightings(source, moments, server))
            of_mdt += self._timed(source, moments, lives) if lives else []
            of_ost += counters.ost_sightings(source, 0, moments, self._server())
        started = [self.started(moment) for moment in moments.tolist()]
        since = np.array(started)
        totals = self._total.mdt_counted(moments, self._failures_until)
        totals -= self._total.mdt_counted(since, self._failures_until)
        times = self._total.mdt_times(moments, self._failures_until)
        times -= self._total.mdt_times(since, self._failures_until)
        return Reads(
            counters.entries_by_poll(of_mdt, len(moments)),
            counters.entries_by_poll(of_ost, len(moments)),
            totals,
            _ratio(times, totals),
            started,
        )

    def _server(self, cleared: int | None = None) -> Server:
        mounts = sorted(moment for moment in (cleared, self._scene.failover) if moment)
        return Server(KEPT_S, mounts, self._failures_until)

    def started(self, moment: int) -> int:
        """Return the start of the servers."""
        failover = self._scene.failover
        return (
            failover if failover and moment >= failover else self._scene.begun - _MOUNTED_BEFORE_S
        )

    def _timed(
        self, source: Answered, moments: Ints, lives: list[Sightings]
    ) -> Iterator[Sightings]:
        """Yield the lives of a source's entry with the slowdowns of its operations."""
        for life in lives:
            times = source.mdt_times(
                np.append(moments[life.polls], life.begin), self._failures_until
            )
            yield replace(life, slowdowns=_ratio(times[:-1] - times[-1], life.counts))

    def clients(self, moments: Ints) -> Iterator[dict[str, list[int]]]:
        """Yield the operations of each client at some times, since the start of the server.

        Every node has mounted the filesystem: a client without operations has empty statistics.
        """
        operations = self._service.operations
        mounted = np.unique(
            np.concatenate([CLIENTS, *(source.clients for source in self._service.sources)])
        )
        nids = [site.NIDS[n] for n in mounted.tolist()]
        cell = np.searchsorted(mounted, operations.client) * COLUMNS + operations.column
        done = np.zeros((len(mounted), COLUMNS), dtype=np.int64)
        failover = self._scene.failover
        row = 0
        for moment in moments.tolist():
            if failover and moment >= failover:  # its counters begin again
                row = max(row, self._row(failover))
                done, failover = np.zeros_like(done), None
            upto = self._row(moment)
            done += np.bincount(cell[row:upto], minlength=done.size).reshape(done.shape)
            row = upto
            counted = done[:, :FAILED_OPENS].copy()
            if not self._failures_until:
                counted[:, OPEN] -= done[:, FAILED_OPENS]
            yield dict(zip(nids, counted.tolist(), strict=True))

    def _row(self, moment: int) -> int:
        """Return the first operation that was not answered before a time."""
        return int(np.searchsorted(self._service.operations.second, moment - self._scene.begun))

    def service_texts(self, moments: Ints) -> Iterator[str]:
        """Yield the statistics of the metadata service at some times."""
        service, seconds = self._service, self._scene.closed - self._scene.begun
        rows = service.in_order[service.kind[service.in_order] >= 0]
        arrival_s, thread_s = service.served.arrival_s[rows], service.served.thread_s[rows]
        second = service.served.answer_s[rows].astype(np.int64)
        waited_us = (thread_s - arrival_s) * MICROSECONDS + _DISPATCH_US
        longest_us = np.zeros(seconds)
        np.maximum.at(longest_us, second, waited_us)
        arrival_s.sort()
        thread_s.sort()
        before = np.searchsorted(thread_s, arrival_s, "right")
        depth = np.maximum(np.arange(len(rows)) - before, 0)
        columns = {
            "requests": np.bincount(second, minlength=seconds),
            "waited_us": np.bincount(second, waited_us, seconds),
            "queued": np.bincount(arrival_s.astype(np.int64), depth, seconds),
            **{
                name: np.bincount(second[np.isin(service.kind[rows], kinds)], minlength=seconds)
                for name, kinds in _SERVICE_KINDS.items()
            },
        }
        for moment in moments.tolist():
            started = self.started(moment)
            span = slice(max(started - self._scene.begun, 0), moment - self._scene.begun)
            sums = {name: int(column[span].sum()) for name, column in columns.items()}
            longest = int(longest_us[span].max(initial=0))
            yield mds_stats.service(
                "mdt", moment * MICROSECONDS, started, _service_counters(sums, longest)
            )


_SERVICE_KINDS = {
    name: [MDT_KINDS.index(kind) for kind, code in trace.OPCODE_OF_KIND.items() if code == opcode]
    for name, opcode in (
        ("ldlm_ibits_enqueue", mds.LDLM_ENQUEUE),
        ("mds_reint", mds.MDS_REINT),
        ("mds_getxattr", mds.MDS_GETXATTR),
        ("mds_close", mds.MDS_CLOSE),
    )
}


def _service_counters(sums: dict[str, int], longest_us: int) -> Iterator[Counter]:
    requests = sums["requests"]
    yield Counter("req_waittime", "usec", requests, 4, longest_us, sums["waited_us"])
    yield Counter("req_qdepth", "reqs", requests, 0, requests, sums["queued"])
    yield Counter("req_active", "reqs", requests, 1, mds.MAIN.size, 2 * requests)
    yield Counter("req_timeout", "sec", requests, 1, 15, requests)
    for name in _SERVICE_KINDS:
        yield Counter(name, "reqs", sums[name], 1, 1, sums[name])


def _by_job_id(sources: list[Answered]) -> Iterator[Answered]:
    """Yield a source for each job id: counters do not distinguish the senders of an id."""
    groups: dict[str, list[Answered]] = defaultdict(list)
    for source in sources:
        if source.job_id is not None:
            groups[source.job_id].append(source)
    yield from map(joined, groups.values())


def _ratio(times: Floats, counts: Ints) -> Floats:
    slowdowns: Floats = np.divide(times, counts, out=np.ones(times.shape), where=counts > 0)
    return slowdowns
