"""All that goes on, but for what becomes of it."""

from dataclasses import dataclass

from simulator.activity import Source
from simulator.cases import cast, hosts
from simulator.cases.cast import BEFORE_S, CALM_S, STREAM_S, Actor
from simulator.cases.filesystems import Filesystem
from simulator.cases.hosts import Host
from simulator.clock import DAY_S, HOUR_S, local
from simulator.randomness import stream

_DAY = local(2017, 9, 4)
_DAYS = 300  # that seeds lie on
_KNEES_PER_S = (240, 340)


@dataclass(frozen=True)
class Scene:
    """Who does what, and when; times are epoch seconds.

    Args:
        seed: that it follows from.
        opened: when the stream begins.
        knee_per_s: requests that a traced server can do in a second.
        actors: all jobs.
        hosts: who sends requests without any.
    """

    seed: int
    opened: int
    knee_per_s: float
    actors: list[Actor]
    hosts: list[Host]

    @classmethod
    def of(cls, seed: int, share: float) -> "Scene":
        """Draw it, with so many of the subjects of a whole set."""
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
        """Return since when anything is known."""
        return self.opened - BEFORE_S

    @property
    def calm_since(self) -> int:
        """Return since when the small server is traced."""
        return self.opened - CALM_S

    @property
    def closed(self) -> int:
        """Return when the stream ends."""
        return self.opened + STREAM_S

    def sources(self, filesystem: Filesystem) -> list[Source]:
        """Return who sends anything to a filesystem."""
        jobs = [one.source for one in self.actors if one.filesystem is filesystem]
        return jobs + [one.source for one in self.hosts if one.filesystem is filesystem]

    def cleared(self) -> dict[Source, int]:
        """Return whose counters somebody clears, and when."""
        return {
            one.source: (one.job.started or 0) + one.role.reset_s
            for one in self.actors
            if one.role.reset_s
        }
