"""The complete demand of a labelled set, before the server processes it."""

from dataclasses import dataclass

from simulator.activity import Source
from simulator.clock import DAY_S, HOUR_S, MINUTE_S, local
from simulator.labelled import cast, hosts
from simulator.labelled.cast import BEFORE_S, STREAM_S, Actor
from simulator.labelled.hosts import Host
from simulator.labelled.play import between
from simulator.randomness import stream
from simulator.servers.queueing import Discipline

_DAY = local(2017, 9, 4)
_DAYS = 300  # range of the seeds' dates
_CAPACITIES_PER_S = (5_000, 60_000)
_TIMED, _UNTIMED = "2.15.3", "2.12.9"
_UNTIMED_SHARE = 0.3  # of the sites
_DISCIPLINES = {Discipline.FIFO: 0.5, Discipline.SHARING: 0.25, Discipline.ROUND_ROBIN: 0.25}


@dataclass(frozen=True)
class Scene:
    """All demand; times are epoch seconds.

    Args:
        seed: seed of all random values.
        opened: start of the stream.
        capacity_per_s: of the metadata server, requests of the usual mix.
        discipline: order of its service in queues.
        version: Lustre version of the servers.
        has_uids: whether job ids carry the user id.
        failover: time at which the servers restart; None: never.
        actors: all jobs.
        hosts: senders of requests outside jobs.
    """

    seed: int
    opened: int
    capacity_per_s: float
    discipline: Discipline
    version: str
    has_uids: bool
    failover: int | None
    actors: list[Actor]
    hosts: list[Host]

    @classmethod
    def draw(cls, seed: int, share: float) -> "Scene":
        """Draw a scene, with a share of the jobs of a complete set."""
        chance = stream(seed, "labelled")
        opened = _DAY + seed % _DAYS * DAY_S + int(chance.integers(24, 36)) * HOUR_S
        capacity_per_s = between(chance, *_CAPACITIES_PER_S)
        has_uids = bool(chance.random() < 1 / 2)
        fails_over = chance.random() < 1 / 2
        at = opened + int(chance.integers(5, 25)) * MINUTE_S
        version = _UNTIMED if chance.random() < _UNTIMED_SHARE else _TIMED
        actors = cast.actors(seed, opened, capacity_per_s, share, has_uids=has_uids)
        senders = hosts.hosts(
            stream(seed, "labelled: hosts"),
            opened - BEFORE_S,
            opened,
            opened + STREAM_S,
            capacity_per_s,
        )
        return cls(
            seed,
            opened,
            capacity_per_s,
            _discipline(seed),
            version,
            has_uids,
            at if fails_over else None,
            actors,
            list(senders),
        )

    @property
    def begun(self) -> int:
        """Return the start of the history."""
        return self.opened - BEFORE_S

    @property
    def closed(self) -> int:
        """Return the end of the stream."""
        return self.opened + STREAM_S

    @property
    def senders(self) -> list[Source]:
        """Return all senders: jobs, then hosts."""
        return [actor.source for actor in self.actors] + [host.source for host in self.hosts]


def _discipline(seed: int) -> Discipline:
    chance = stream(seed, "labelled: discipline")
    return list(_DISCIPLINES)[int(chance.choice(len(_DISCIPLINES), p=[*_DISCIPLINES.values()]))]
