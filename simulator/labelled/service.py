"""Service of a scene's demand by the metadata server."""

from dataclasses import dataclass, replace

import numpy as np

from simulator.activity import MDT_KINDS, OPEN, Burst, Source
from simulator.batch.jobs import Floats, Ints
from simulator.clock import MICROSECONDS
from simulator.labelled.scene import Scene
from simulator.servers import mds, trace
from simulator.servers.counters import NEVER
from simulator.servers.fluid import Demand, Fluid

_IN_FLIGHT_PER_CLIENT = 8  # Lustre's max_rpcs_in_flight
_PIECE_S = 5  # of delayed activity
# Service time of each kind of operation on an idle server; 0: part of another request.
_WORK_S = np.array(
    [
        mds.mean_us(trace.OPCODE_OF_KIND[kind]) / MICROSECONDS
        if kind in trace.OPCODE_OF_KIND
        else 0.0
        for kind in MDT_KINDS
    ]
)
IS_REQUEST = _WORK_S > 0


@dataclass(frozen=True)
class Service:
    """The server's work; times are epoch seconds.

    Args:
        begun: the first second.
        fluid: the server.
        sources: the served operations of each sender.
        wait_s: time of a request before service, by second.
        stretch: service time / service time on an idle server, by second.
        done: operations done before each second and at the end; shape (seconds + 1, MDT_KINDS).
        counted: the same without failed opens.
    """

    begun: int
    fluid: Fluid
    sources: list[Source]
    wait_s: Floats
    stretch: Floats
    done: Ints
    counted: Ints

    @classmethod
    def serve(cls, scene: Scene) -> "Service":
        """Serve the demand of a scene."""
        senders = scene.senders
        begun, seconds = scene.begun, scene.closed - scene.begun
        in_flight = np.array([_IN_FLIGHT_PER_CLIENT * len(s.clients) for s in senders], dtype=float)
        fluid = Fluid(_demand(senders, begun, seconds), seconds, in_flight, scene.capacity_per_s)
        wait_s, stretch = fluid.service(fluid.queue_s(fluid.load))
        for episode in fluid.episodes:
            wait_s[episode.start : episode.end] = episode.wait_s
            stretch[episode.start : episode.end] = episode.stretch
        queued = {n for episode in fluid.episodes for n in episode.senders.tolist()}
        sources = [
            _delayed(source, begun, _served_requests(fluid, n)) if n in queued else source
            for n, source in enumerate(senders)
        ]
        done, counted = (_sums(sources, begun, seconds, failures) for failures in (NEVER, 0))
        return cls(begun, fluid, sources, wait_s, stretch, done, counted)


def _sums(sources: list[Source], begun: int, seconds: int, failures_until: int) -> Ints:
    """Return the operations of all sources that were counted before each second."""
    each = np.zeros((seconds + 1, len(MDT_KINDS)), dtype=np.int64)
    for source in sources:
        first, last = max(source.start, begun), min(source.end, begun + seconds)
        if first < last:
            counts = source.mdt_counted(np.arange(first, last + 1), failures_until)
            each[first - begun + 1 : last - begun + 1] += np.diff(counts, axis=0)
    total: Ints = np.cumsum(each, axis=0)
    return total


def _demand(senders: list[Source], begun: int, seconds: int) -> Demand:
    parts = []
    for n, source in enumerate(senders):
        first, last = max(source.start, begun), min(source.end, begun + seconds)
        if first >= last:
            continue
        counts = np.diff(source.mdt_counts(np.arange(first, last + 1)), axis=0)
        requests, work_s = counts @ IS_REQUEST, counts @ _WORK_S
        active = np.flatnonzero(requests)
        parts.append(
            (first - begun + active, np.full(len(active), n), requests[active], work_s[active])
        )
    second, sender, requests, work_s = (
        np.concatenate(column) for column in zip(*parts, strict=True)
    )
    order = np.argsort(second, kind="stable")
    return Demand(second[order], sender[order], requests[order].astype(float), work_s[order])


def _served_requests(fluid: Fluid, sender: int) -> Floats:
    """Return the requests of a sender that were served in each second."""
    mine = fluid.demand.sender == sender
    served = np.bincount(fluid.demand.second[mine], fluid.demand.requests[mine], fluid.seconds)
    for episode in fluid.episodes:
        column = np.searchsorted(episode.senders, sender)
        if column < len(episode.senders) and episode.senders[column] == sender:
            served[episode.start : episode.end] = episode.served[:, column]
    return served.astype(float)


def _delayed(source: Source, begun: int, served: Floats) -> Source:
    """Return a source whose operations are done when they are served."""
    seconds = np.arange(len(served) + 1) + begun
    demanded = np.concatenate(
        [[0], np.cumsum(np.diff(source.mdt_counts(seconds), axis=0) @ IS_REQUEST)]
    )
    reached = np.concatenate([[0.0], np.cumsum(served)])
    # The demand until this time is done at each second.
    done_until = np.maximum.accumulate(
        np.where(reached >= demanded - 1, seconds, np.interp(reached, demanded, seconds))
    )
    if (done_until > seconds - 1).all():
        return source
    edges = np.arange(0, len(seconds), _PIECE_S)
    at = done_until[edges]
    counts = np.diff(source.mdt_counts(at), axis=0)
    failed = counts[:, OPEN] - np.diff(source.mdt_counted(at, 0)[:, OPEN])
    bursts = [replace(burst, mdt={}, failed_opens=0) for burst in source.bursts]
    bursts += [
        Burst(
            int(seconds[edges[n]]),
            int(seconds[edges[n + 1]]),
            {
                kind: int(count)
                for kind, count in zip(MDT_KINDS, counts[n], strict=True)
                if count and kind != "rename"
            },
            failed_opens=int(failed[n]),
        )
        for n in np.flatnonzero(counts.any(axis=1)).tolist()
    ]
    return replace(source, bursts=tuple(sorted(bursts, key=lambda burst: burst.start)))
