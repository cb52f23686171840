"""The counters of the servers at each read: by job, of the target, of the service."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from simulator import site
from simulator.activity import MDT_KINDS, Source
from simulator.batch.jobs import Floats, Ints
from simulator.clock import HOUR_S, MICROSECONDS, MINUTE_S
from simulator.formats import mds_stats
from simulator.formats.mds_stats import Counter
from simulator.formats.releases import counts_failed_opens
from simulator.labelled.cast import CLIENTS
from simulator.labelled.scene import Scene
from simulator.labelled.service import IS_REQUEST, Service
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
        self._counted = service.done if self._failures_until else service.counted
        self._times = _times(self._counted, service.stretch) + sum(
            self._locked(source, np.arange(scene.begun, scene.closed + 1))
            for source in service.sources
            if source.blocked_share
        )
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
        begun = self._scene.begun
        since = np.array([max(self.started(moment), begun) for moment in moments.tolist()])
        totals = self._counted[moments - begun] - self._counted[since - begun]
        times = self._times[moments - begun] - self._times[since - begun]
        return Reads(
            counters.entries_by_poll(of_mdt, len(moments)),
            counters.entries_by_poll(of_ost, len(moments)),
            totals,
            _ratio(times, totals),
            [self.started(moment) for moment in moments.tolist()],
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

    def _timed(self, source: Source, moments: Ints, lives: list[Sightings]) -> Iterator[Sightings]:
        """Yield the lives of a source's entry with the slowdowns of its operations."""
        begun, closed = self._scene.begun, self._scene.closed
        first, last = max(source.start, begun), min(source.end, closed)
        seconds = np.arange(first, last + 1)
        counts = source.mdt_counted(seconds, self._failures_until)
        times = _times(counts, self._service.stretch[first - begun : last - begun])
        times += self._locked(source, seconds)
        for life in lives:
            upto = np.clip(np.append(moments[life.polls], life.begin), first, last) - first
            yield replace(life, slowdowns=_ratio(times[upto[:-1]] - times[upto[-1]], life.counts))

    def _locked(self, source: Source, moments: Ints) -> Floats:
        """Return the times of operations that waited for locks, relative to an idle server's."""
        counts = source.mdt_counted(moments, self._failures_until)
        locked: Floats = counts * (source.blocked_share * _LOCK_FACTORS)
        return locked

    def clients(self, moments: Ints) -> Iterator[dict[str, list[int]]]:
        """Yield the operations of each client at some times, since the start of the server.

        Every node has mounted the filesystem: a client without operations has empty statistics.
        """
        restarts = [at for at in [self._scene.failover] if at]
        at = np.concatenate([moments, np.array(restarts, dtype=np.int64)])
        done = np.zeros((len(at), len(site.NIDS), len(MDT_KINDS)), dtype=np.int64)
        for source in self._service.sources:
            done[:, source.clients] += counters.by_client(source, at, self._failures_until)
        for restart, before in zip(restarts, done[len(moments) :].copy(), strict=True):
            done[at >= restart] -= before
        mounted = np.unique(
            np.concatenate([CLIENTS, *(source.clients for source in self._service.sources)])
        )
        nids = [site.NIDS[n] for n in mounted.tolist()]
        for counts in done[: len(moments)]:
            yield dict(zip(nids, counts[mounted].tolist(), strict=True))

    def service_texts(self, moments: Ints) -> Iterator[str]:
        """Yield the statistics of the metadata service at some times."""
        done = np.diff(self._service.done, axis=0)
        requests = done @ IS_REQUEST
        wait_us = self._service.wait_s * MICROSECONDS + _DISPATCH_US
        columns = {
            "requests": requests,
            "waited_us": requests * wait_us,
            "queued": requests * requests * self._service.wait_s,  # Little's law
            **{
                name: done[:, [MDT_KINDS.index(kind) for kind in kinds]].sum(axis=1)
                for name, kinds in _SERVICE_KINDS.items()
            },
        }
        for moment in moments.tolist():
            started = self.started(moment)
            span = slice(max(started - self._scene.begun, 0), moment - self._scene.begun)
            sums = {name: int(column[span].sum()) for name, column in columns.items()}
            longest_us = int(wait_us[span].max(initial=0)) * 3
            yield mds_stats.service(
                "mdt", moment * MICROSECONDS, started, _service_counters(sums, longest_us)
            )


# Mean waiting of an operation of each kind for a lock / its time on an idle server.
_LOCK_FACTORS = np.array(
    [
        mds.BLOCKED_MEAN_US / mds.mean_us(mds.LDLM_ENQUEUE)
        if trace.OPCODE_OF_KIND.get(kind) == mds.LDLM_ENQUEUE
        else 0.0
        for kind in MDT_KINDS
    ]
)
_SERVICE_KINDS = {
    "ldlm_ibits_enqueue": [
        kind for kind, code in trace.OPCODE_OF_KIND.items() if code == mds.LDLM_ENQUEUE
    ],
    "mds_reint": [kind for kind, code in trace.OPCODE_OF_KIND.items() if code == mds.MDS_REINT],
    "mds_getxattr": ["getxattr"],
    "mds_close": ["close"],
}


def _service_counters(sums: dict[str, int], longest_us: int) -> Iterator[Counter]:
    requests = sums["requests"]
    yield Counter("req_waittime", "usec", requests, 4, longest_us, sums["waited_us"])
    yield Counter("req_qdepth", "reqs", requests, 0, requests, sums["queued"])
    yield Counter("req_active", "reqs", requests, 1, mds.MAIN.size, 2 * requests)
    yield Counter("req_timeout", "sec", requests, 1, 15, requests)
    for name in _SERVICE_KINDS:
        yield Counter(name, "reqs", sums[name], 1, 1, sums[name])


def _by_job_id(sources: list[Source]) -> Iterator[Source]:
    """Yield a source for each job id: counters do not distinguish the senders of an id."""
    groups: dict[str, list[Source]] = defaultdict(list)
    for source in sources:
        if source.job_id is not None:
            groups[source.job_id].append(source)
    for group in groups.values():
        bursts = sorted((b for source in group for b in source.bursts), key=lambda b: b.start)
        yield group[0] if len(group) == 1 else replace(group[0], bursts=tuple(bursts))


def _times(counts: Ints, stretch: Floats) -> Floats:
    """Return the times of counted operations before each second, relative to an idle server's."""
    times = np.zeros(counts.shape)
    times[1:] = np.cumsum(np.diff(counts, axis=0) * stretch[:, None], axis=0)
    return times


def _ratio(times: Floats, counts: Ints) -> Floats:
    slowdowns: Floats = np.maximum(times / np.maximum(counts, 1), 1.0)
    return slowdowns
