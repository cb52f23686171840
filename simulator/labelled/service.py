"""Service of a scene's demand by the metadata server: single requests, and what counts them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.activity import MDT_KINDS, OPEN, RENAME, RENAMES, Source
from simulator.batch.jobs import Ints
from simulator.clock import MICROSECONDS
from simulator.labelled import answered
from simulator.labelled.answered import FAILED_OPENS, Answered, Operations
from simulator.labelled.scene import Scene
from simulator.randomness import stream
from simulator.servers import mds, trace
from simulator.servers.queueing import Requests, Served, Server
from simulator.servers.trace import OPCODE_OF_KIND

Bools = NDArray[np.bool_]

_IN_FLIGHT_PER_CLIENT = 8  # Lustre's max_rpcs_in_flight
_MKNOD = MDT_KINDS.index("mknod")
_IDLE_S = np.array(
    [mds.mean_us(OPCODE_OF_KIND.get(kind, mds.LDLM_ENQUEUE)) / MICROSECONDS for kind in MDT_KINDS]
)


@dataclass(frozen=True)
class Service:
    """The server's work.

    Args:
        begun: the first epoch second; times count from it.
        server: the server.
        requests: all requests.
        opcode: of each request.
        kind: of the operation of each, index into MDT_KINDS; -1: none.
        served: their service.
        in_order: rows of the requests that are answered until the stream ends, in this order.
        operations: operations of these requests.
        sources: the senders with these operations.
    """

    begun: int
    server: Server
    requests: Requests
    opcode: Ints
    kind: Ints
    served: Served
    in_order: Ints
    operations: Operations
    sources: list[Answered]

    @classmethod
    def serve(cls, scene: Scene) -> "Service":
        """Serve the demand of a scene."""
        senders, seconds = scene.senders, scene.closed - scene.begun
        chance = stream(scene.seed, "labelled: requests")
        sent = trace.requests(senders, scene.begun, scene.closed, 0, chance, bin_s=1)
        blocked_share = np.array([source.blocked_share for source in senders])
        requests = Requests(
            demand_s=(sent.arrival_us - scene.begun * MICROSECONDS) / MICROSECONDS,
            sender=sent.source,
            client=sent.client,
            idle_s=mds.service_times(sent.opcode, chance) / MICROSECONDS,
            locked_s=mds.lock_waits(sent.opcode, blocked_share[sent.source], chance) / MICROSECONDS,
        )
        server = Server(
            scene.capacity_per_s * mds.MAIN_MEAN_US / MICROSECONDS,
            np.array([_IN_FLIGHT_PER_CLIENT * len(source.clients) for source in senders]),
            scene.discipline,
        )
        served = server.serve(requests)
        in_order = np.argsort(served.answer_s, kind="stable")
        in_order = in_order[: np.searchsorted(served.answer_s[in_order], seconds)]
        special = _special_opens(senders, requests, sent.kind, scene.begun)
        special[RENAME] = np.isin(sent.kind, RENAMES)
        operations = _operations(requests, sent.kind, served, in_order, special)
        return cls(
            scene.begun,
            server,
            requests,
            sent.opcode,
            sent.kind,
            served,
            in_order,
            operations,
            answered.by_sender(senders, operations, scene.begun),
        )


def _operations(
    requests: Requests, kind: Ints, served: Served, in_order: Ints, special: Mapping[int, Bools]
) -> Operations:
    """Return the operations of answered requests.

    Args:
        requests: all requests.
        kind: of the operation of each.
        served: their service.
        in_order: rows of answered requests.
        special: requests that count in another column, too.
    """
    rows = in_order[kind[in_order] >= 0]
    parts = [(rows, kind[rows])]
    for column, is_special in special.items():
        both = rows[is_special[rows]]
        parts.append((both, np.full(len(both), column)))
    row, columns = (np.concatenate(each) for each in zip(*parts, strict=True))
    second = served.answer_s[row].astype(np.int64)
    order = np.argsort(second, kind="stable")
    row = row[order]
    service_s = served.answer_s[row] - served.thread_s[row]
    return Operations(
        second[order],
        requests.sender[row],
        requests.client[row],
        columns[order],
        service_s / _IDLE_S[kind[row]],
    )


def _special_opens(
    senders: Sequence[Source], requests: Requests, kind: Ints, begun: int
) -> dict[int, Bools]:
    """Return which requests are opens that create a file, and which are opens that fail."""
    creates, fails = (np.zeros(len(requests), dtype=bool) for _ in range(2))
    opens = np.flatnonzero(kind == OPEN)
    opens = opens[np.argsort(requests.sender[opens], kind="stable")]
    edges = np.searchsorted(requests.sender[opens], np.arange(len(senders) + 1))
    for source, first, after in zip(senders, edges[:-1], edges[1:], strict=True):
        rows = opens[first:after]
        if not len(rows):
            continue
        end, inverse = np.unique(requests.demand_s[rows].astype(np.int64) + 1, return_inverse=True)
        moments = np.append(end + begun, begun)
        done = source.mdt_counts(moments)
        failed = done[:, OPEN] - source.mdt_counted(moments, 0)[:, OPEN]
        creates[rows] = _first_after(done[:, _MKNOD], inverse)
        fails[rows] = _first_after(failed, inverse)
    return {_MKNOD: creates, FAILED_OPENS: fails}


def _first_after(totals: Ints, second: Ints) -> Bools:
    """Return which opens of a sender are special: the next open whenever a special open is due.

    Args:
        totals: number that is due by the end of some seconds; last element: before these seconds.
        second: index of the second of each open, ascending.
    """
    due = (totals[:-1] - totals[-1])[second]
    place = np.arange(1, len(second) + 1)
    reached = place + np.minimum(np.minimum.accumulate(due - place), 0)
    return np.diff(reached, prepend=0) > 0
