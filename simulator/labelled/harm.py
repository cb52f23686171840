"""Harm: the waiting of others that would not be without a group of senders.

The same demand is served again without the group. Harm is the time that the requests of all others
spend at the server with the group, less their time without it. A user's own waiting is no harm.

On a server at its limit, every sender prolongs the waiting of the job that overloads it, and
without any of them it would be below its limit. Such bystanders are not harmful: only minutes and
queues count in which the group does a notable part of the work, and others would save a notable
part of their waiting without it. A queue counts from the group's first request in it. In a queue,
the waiting of users who are twice as busy as the group is their own doing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simulator.batch.jobs import Floats, Ints
from simulator.clock import MINUTE_S
from simulator.servers.fluid import Episode, Fluid

_NOTABLE = 0.2  # of the others' waiting in a minute, or in the whole time of a queue
_NOTABLE_WORK = 0.1  # of all work in it
_BUSIER = 2.0  # work of another user in a queue / of the group: its waiting does not count
_SCENARIOS = 64  # at once
_IDLE_LOAD = 0.02  # a server with less load adds no waiting
_LEAST_S = 1.0  # smaller harm is none


@dataclass(frozen=True)
class Harm:
    """Waiting of others because of a group.

    Args:
        waited_s: in total.
        second: seconds in which it occurs, ascending; shape (n,).
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
    """Harm and waiting of others, and work, in some seconds; arrays of shape (n,)."""

    second: Ints
    harm_s: Floats
    waiting_s: Floats
    work_s: Floats  # of the group, on an idle server
    all_work_s: Floats
    period: Ints  # index of the minute or queue, from 0 on

    def notable(self) -> tuple[Ints, Floats]:
        """Return seconds and harm in periods in which the group is no bystander."""
        harm_s, waiting_s, work_s, all_work_s = (
            np.bincount(self.period, column)
            for column in (self.harm_s, self.waiting_s, self.work_s, self.all_work_s)
        )
        notable = (harm_s > _NOTABLE * waiting_s) & (work_s > _NOTABLE_WORK * all_work_s)
        is_notable = notable[self.period]
        return self.second[is_notable], self.harm_s[is_notable]


def measure(fluid: Fluid, suspects: Sequence[Suspect], owners: Ints) -> list[Harm]:
    """Return the harm of each suspect.

    Args:
        fluid: the server.
        suspects: groups of its senders.
        owners: number of the user of each sender; of a host, its own.
    """
    parts: list[list[_Part]] = [[] for _ in suspects]
    _between_episodes(fluid, suspects, parts)
    for episode in fluid.episodes:
        _in_episode(fluid, episode, suspects, owners, parts)
    return [_total(part) for part in parts]


def _total(parts: list[_Part]) -> Harm:
    if not parts:
        return NONE
    second, harm_s = (
        np.concatenate(column) for column in zip(*(part.notable() for part in parts), strict=True)
    )
    order = np.argsort(second, kind="stable")
    reached_s = np.cumsum(harm_s[order])
    if not len(order) or reached_s[-1] < _LEAST_S:
        return NONE
    return Harm(float(reached_s[-1]), second[order], reached_s)


def _between_episodes(fluid: Fluid, suspects: Sequence[Suspect], parts: list[list[_Part]]) -> None:
    """Add the harm in seconds without a queue, in which requests share the processors."""
    is_calm = fluid.load > _IDLE_LOAD
    for episode in fluid.episodes:
        is_calm[episode.start : episode.end] = False
    demand = fluid.demand
    rows = np.flatnonzero(is_calm[demand.second])
    rows = rows[np.argsort(demand.sender[rows], kind="stable")]
    first = np.searchsorted(demand.sender[rows], np.arange(len(fluid.work_s) + 1))

    def work_s(senders: Ints) -> Floats:
        """Return the work of some senders in each second."""
        mine = np.concatenate([rows[first[n] : first[n + 1]] for n in senders.tolist()])
        total_s: Floats = np.bincount(
            demand.second[mine], demand.work_s[mine], fluid.seconds
        ).astype(float)
        return total_s

    for suspect, part in zip(suspects, parts, strict=True):
        group_s = work_s(suspect.senders)
        second = np.flatnonzero(group_s)
        if not len(second):
            continue
        load = fluid.load[second]
        without = load - group_s[second] / fluid.power
        others_s = load * fluid.power - work_s(suspect.own)[second]  # on an idle server
        waiting_s = fluid.waiting_s(load, others_s)
        harm_s = waiting_s - fluid.waiting_s(without, others_s)
        minute = (second - second[0]) // MINUTE_S
        part.append(_Part(second, harm_s, waiting_s, group_s[second], load * fluid.power, minute))


def _in_episode(
    fluid: Fluid,
    episode: Episode,
    suspects: Sequence[Suspect],
    owners: Ints,
    parts: list[list[_Part]],
) -> None:
    """Add the harm in a queue."""
    is_here = np.zeros(len(fluid.work_s), dtype=bool)
    is_here[episode.senders] = True
    here = [n for n, suspect in enumerate(suspects) if is_here[suspect.senders].any()]
    seconds = np.arange(episode.start, episode.end)
    idle_s = episode.served * fluid.work_s[episode.senders]
    owner = owners[episode.senders]
    owner_s = np.bincount(owner, idle_s.sum(axis=0))[owner]
    for begin in range(0, len(here), _SCENARIOS):
        numbers = here[begin : begin + _SCENARIOS]
        left_out = np.array([np.isin(episode.senders, suspects[n].senders) for n in numbers])
        group_s = left_out @ idle_s.sum(axis=0)
        is_busier = owner_s > _BUSIER * group_s[:, None]
        own = np.array([np.isin(episode.senders, suspects[n].own) for n in numbers])
        others = ~own & ~is_busier
        without = fluid.delays_without(episode, left_out, others)
        for n, absent, counted, delay_s in zip(numbers, left_out, others, without, strict=True):
            others_s = episode.delay_s[:, counted].sum(axis=1)
            waiting_s = others_s - idle_s[:, counted].sum(axis=1)
            work_s = idle_s[:, absent].sum(axis=1)
            since = slice(int(np.argmax(work_s > 0)), None)  # before, nobody waits for the group
            parts[n].append(
                _Part(
                    seconds[since],
                    (others_s - delay_s)[since],
                    waiting_s[since],
                    work_s[since],
                    idle_s.sum(axis=1)[since],
                    np.zeros_like(seconds[since]),
                )
            )
