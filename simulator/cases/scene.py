"""The complete activity of a labelled set, before servers process it."""

from dataclasses import dataclass

from simulator.activity import Source
from simulator.cases import cast, hosts
from simulator.cases.cast import BEFORE_S, CALM_S, STREAM_S, Actor
from simulator.cases.filesystems import Filesystem
from simulator.cases.hosts import Host
from simulator.clock import DAY_S, HOUR_S, local
from simulator.randomness import stream

_DAY = local(2017, 9, 4)
_DAYS = 300  # range of the seeds' dates
_KNEES_PER_S = (240, 340)


@dataclass(frozen=True)
class Scene:
    """All activity; times are epoch seconds.

    Args:
        seed: seed of all random values.
        opened: start of the stream.
        knee_per_s: capacity of a traced server, requests per second.
        actors: all jobs.
        hosts: senders of requests outside jobs.
    """

    seed: int
    opened: int
    knee_per_s: float
    actors: list[Actor]
    hosts: list[Host]

    @classmethod
    def draw(cls, seed: int, share: float) -> "Scene":
        """Draw a scene, with a share of the subjects of a complete set."""
        chance = stream(seed, "cases")
        opened = _DAY + seed % _DAYS * DAY_S + int(chance.integers(24, 36)) * HOUR_S
        knee_per_s = float(chance.uniform(*_KNEES_PER_S))
        return cls(
            seed,
            opened,
            knee_per_s,
            cast.actors(seed, opened, knee_per_s, share),
            hosts.hosts(stream(seed, "cases: hosts"), opened),
        )

    @property
    def begun(self) -> int:
        """Return the start of the history."""
        return self.opened - BEFORE_S

    @property
    def calm_since(self) -> int:
        """Return the start of the small server's trace."""
        return self.opened - CALM_S

    @property
    def closed(self) -> int:
        """Return the end of the stream."""
        return self.opened + STREAM_S

    def sources(self, filesystem: Filesystem) -> list[Source]:
        """Return all senders to a filesystem."""
        jobs = [actor.source for actor in self.actors if actor.filesystem is filesystem]
        return jobs + [host.source for host in self.hosts if host.filesystem is filesystem]

    def cleared(self) -> dict[Source, int]:
        """Return the sources whose counters are cleared, with the times."""
        return {
            actor.source: (actor.job.started or 0) + actor.role.reset_s
            for actor in self.actors
            if actor.role.reset_s
        }
