"""Harm: the extra waiting of others because of a group of senders.

The same requests are served again without the group. Harm is the time that the requests of all
others spend at the server with the group, less their time without it. A user's own waiting is no
harm.

On a server at its limit, every sender prolongs the waiting for the job that overloads it, and
without any of them it would be below its limit. Such bystanders are not harmful: only queues and
minutes count in which the group does a notable part of the work, and others would save a notable
part of their waiting without it. In a queue, the waiting of users who are twice as busy as the
group is their own doing.

Two storms may each block the server: if one is removed, others still wait as long. So the harm in a
queue is measured a second time, with the group added to the calm load only: the requests of all but
the heavy groups. The larger harm counts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.batch.jobs import Floats, Ints
from simulator.clock import MINUTE_S
from simulator.servers.queueing import Requests, Served, Server

Bools = NDArray[np.bool_]

_NOTABLE = 0.2  # of the others' waiting in a queue or minute
_NOTABLE_WORK = 0.1  # of all work in it
_MINOR_WORK = 0.005  # of all work in it: such senders of a group make no difference
_BUSIER = 2.0  # work of another user in a queue / of the group: its waiting does not count
_LEAST_S = 1.0  # smaller harm is none
_LEAST_WAITING_S = 0.2  # of all requests in a minute without a queue


@dataclass(frozen=True)
class Harm:
    """Waiting of others because of a group.

    Args:
        waited_s: in total.
        second: seconds in which delayed requests were answered, ascending; shape (n,).
        reached_s: waiting until each of these seconds; shape (n,).
    """

    waited_s: float
    second: Ints
    reached_s: Floats

    def onset(self, waited_s: float) -> int | None:
        """Return the second in which others have waited this long; None: never."""
        beyond = np.flatnonzero(self.reached_s >= waited_s)
        return int(self.second[beyond[0]]) if len(beyond) else None


NONE = Harm(0.0, np.empty(0, dtype=np.int64), np.empty(0))


@dataclass(frozen=True)
class Suspect:
    """Senders whose harm is measured.

    Args:
        senders: their indices.
        own: these and all other senders of their owner, whose waiting does not count.
    """

    senders: Ints
    own: Ints


@dataclass(frozen=True)
class _Part:
    """Harm in a queue or minute, by the second in which others' requests were answered."""

    second: Ints
    harm_s: Floats


def measure(
    server: Server,
    requests: Requests,
    served: Served,
    suspects: Sequence[Suspect],
    owners: Ints,
) -> list[Harm]:
    """Return the harm of each suspect.

    Args:
        server: the server.
        requests: all requests.
        served: their service.
        suspects: groups of senders.
        owners: number of the user of each sender; of a host, its own.
    """
    parts: list[list[_Part]] = [[] for _ in suspects]
    for rows in _periods(requests, served):
        period = _Period(server, requests.take(rows), _taken(served, rows), owners)
        for n, part in period.harms(suspects):
            parts[n].append(part)
    return [_total(part) for part in parts]


def _total(parts: list[_Part]) -> Harm:
    if not parts:
        return NONE
    seconds = np.concatenate([part.second for part in parts])
    second, inverse = np.unique(seconds, return_inverse=True)
    harm_s = np.concatenate([part.harm_s for part in parts])
    reached_s: Floats = np.cumsum(np.bincount(inverse, harm_s))
    if reached_s[-1] < _LEAST_S:
        return NONE
    return Harm(float(reached_s[-1]), second, reached_s)


def _taken(served: Served, rows: Ints) -> Served:
    return Served(
        served.arrival_s[rows],
        served.thread_s[rows],
        served.turn_s[rows],
        served.answer_s[rows],
        [slice(0, len(rows))],
    )


def _periods(requests: Requests, served: Served) -> Iterator[Ints]:
    """Yield the requests of each queue, and of each minute in which requests wait without one."""
    calm = np.ones(len(requests), dtype=bool)
    for queue in served.queues:
        calm[queue] = False
        yield np.arange(queue.start, queue.stop)
    rows = np.flatnonzero(calm)
    minute = (requests.demand_s[rows] // MINUTE_S).astype(np.int64)
    waiting_s = np.bincount(minute, served.turn_s[rows] - served.arrival_s[rows])
    for n in np.flatnonzero(waiting_s >= _LEAST_WAITING_S).tolist():
        first, after = np.searchsorted(minute, [n, n + 1])
        yield rows[first:after]


class _Period:
    """Requests of a queue or minute."""

    def __init__(self, server: Server, requests: Requests, served: Served, owners: Ints) -> None:
        self._server = server
        self._requests = requests
        self._served = served
        self._owners = owners
        self._work_s = np.bincount(requests.sender, requests.idle_s, len(owners))
        self._services: dict[bytes, tuple[Ints, Served]] = {}

    def harms(self, suspects: Sequence[Suspect]) -> Iterator[tuple[int, _Part]]:
        """Yield the number and the harm of each harmful suspect."""
        work_s = np.array([self._work_s[suspect.senders].sum() for suspect in suspects])
        notable = np.flatnonzero(work_s > _NOTABLE_WORK * self._work_s.sum()).tolist()
        is_heavy = self._heavy([suspects[n] for n in notable])
        owner_s = np.bincount(self._owners, self._work_s)[self._owners]
        for n in notable:
            group = self._mask(self._major(suspects[n].senders))
            own = self._mask(suspects[n].own)
            others = ~own & (owner_s <= _BUSIER * work_s[n])
            everyone = np.ones_like(group)
            parts = [
                self._difference(everyone, ~group, others),
                self._difference(~is_heavy | group, ~is_heavy & ~group, others),
            ]
            known = [part for part in parts if part is not None]
            if known:
                yield n, max(known, key=lambda part: part.harm_s.sum())

    def _mask(self, senders: Ints) -> Bools:
        mask = np.zeros(len(self._owners), dtype=bool)
        mask[senders] = True
        return mask

    def _major(self, senders: Ints) -> Ints:
        """Return the senders that do nearly all of a group's work: wider groups have the same."""
        ascending = senders[np.argsort(self._work_s[senders], kind="stable")]
        reached_s = np.cumsum(self._work_s[ascending])
        major: Ints = ascending[reached_s > _MINOR_WORK * self._work_s.sum()]
        return major

    def _heavy(self, groups: Sequence[Suspect]) -> Bools:
        """Return the senders of all groups that do much work even without their heavy parts."""
        is_heavy = np.zeros(len(self._owners), dtype=bool)
        for group in sorted(groups, key=lambda group: len(group.senders)):
            light = group.senders[~is_heavy[group.senders]]
            if self._work_s[light].sum() > _NOTABLE_WORK * self._work_s.sum():
                is_heavy[light] = True
        return is_heavy

    def _difference(self, present: Bools, without: Bools, others: Bools) -> _Part | None:
        """Return others' time with some senders less that without a group; None: not notable."""
        rows, served = self._service(present)
        rows_without, served_without = self._service(without)
        sender = self._requests.sender
        counted, counted_without = (
            others[sender[each]] & without[sender[each]] for each in (rows, rows_without)
        )
        answer_s, arrival_s = served.answer_s[counted], served.arrival_s[counted]
        harm_s = (answer_s - arrival_s) - (served_without.answer_s - served_without.arrival_s)[
            counted_without
        ]
        begun_s = self._requests.demand_s[rows][~without[sender[rows]]].min(initial=np.inf)
        since = self._requests.demand_s[rows][counted] >= begun_s  # earlier ones do not wait for it
        waiting_s = (served.turn_s[counted] - arrival_s)[since].sum()
        if not harm_s.sum() > _NOTABLE * waiting_s:
            return None
        second, inverse = np.unique(answer_s.astype(np.int64), return_inverse=True)
        by_second: Floats = np.bincount(inverse, harm_s).astype(float)
        return _Part(second, by_second)

    def _service(self, present: Bools) -> tuple[Ints, Served]:
        """Return the requests of some senders, and their service without the others."""
        present = present & (self._work_s > 0)
        key = present.tobytes()
        if key not in self._services:
            rows = np.flatnonzero(present[self._requests.sender])
            is_all = len(rows) == len(self._requests)
            served = self._served if is_all else self._server.serve(self._requests.take(rows))
            self._services[key] = rows, served
        return self._services[key]
