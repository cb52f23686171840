"""Faults of a seed: chosen at random, injected at their time, and counted."""

from __future__ import annotations

import resource
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

    from chaos.deliveries import Copies
    from chaos.installation import Installation
    from chaos.units import Unit

KINDS = ("agent", "web", "worker", "beat", "database", "broker")
LAST_S = 4.0  # the last fault has occurred by then
# In a share of the seeds, a service freezes for longer than any time-out; others are killed.
FROZEN = {5: "broker", 10: "database"}  # by the seed modulo 25
FREEZE_S = (60.0, 90.0)
_FILE_BYTES = 3_000  # maximum size of a file while the disk is full
_UNLIMITED = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)


class Faults:
    """Injects faults into an installation, and counts them."""

    def __init__(self, site: Installation, copies: Copies) -> None:
        self._site = site
        self._copies = copies
        self.done: dict[str, Counter[str]] = defaultdict(Counter)  # fault, kind of process

    def schedule(self, seed: int, random: Random) -> Iterator[tuple[float, Callable[[], object]]]:
        """Yield the actions of a seed, with their times in seconds from its start.

        Every seed kills each kind of process once, and injects random additional faults.
        """
        frozen = FROZEN.get(seed % 25)
        kinds = [kind for kind in KINDS if kind != frozen]
        kind = kinds[seed % len(kinds)]
        unit = random.choice(self._site.kinds[kind])
        yield random.uniform(0.2, LAST_S), _bound(self._kill, random, kind, unit)
        for _ in range(random.randint(1, 3)):
            kind = random.choice(kinds)
            unit = random.choice(self._site.kinds[kind])
            fault = random.choice([self._kill, self._kill, self._pause, self._restart])
            yield random.uniform(0.2, LAST_S), _bound(fault, random, kind, unit)
        for chance, other in (
            (0.4, self._flush),
            (0.2, self._leave),
            (0.5, self._kill_web_worker),
            (1.0, self._deliver_again),
            (0.3, self._deliver_again),
        ):
            if random.random() < chance:
                yield random.uniform(0.5, LAST_S), _bound(other, random)
        if frozen:
            [unit] = self._site.kinds[frozen]
            begin, seconds = random.uniform(0.2, 1), random.uniform(*FREEZE_S)
            yield begin, _bound(self._freeze, random, frozen, unit, seconds)
            yield begin + seconds, unit.resume  # the seed lasts until then
        if random.random() < 0.25:  # noqa: PLR2004
            agent = random.choice(self._site.kinds["agent"])
            begin = random.uniform(0.2, LAST_S - 1.5)
            yield begin, _bound(self._fill_disk, agent)
            yield begin + 1.5, _bound(self._empty_disk, agent)

    def _kill(self, random: Random, kind: str, unit: Unit) -> None:
        self.done["kills"][kind] += unit.kill(random)

    def _kill_web_worker(self, random: Random) -> None:
        """Kill one of the web workers: their main process replaces it."""
        [web] = self._site.kinds["web"]
        self.done["kills"]["web-worker"] += web.kill_child(random)

    def _pause(self, random: Random, kind: str, unit: Unit) -> None:
        self.done["pauses"][kind] += unit.pause(random.uniform(0.3, 1.5))

    def _freeze(self, random: Random, kind: str, unit: Unit, seconds: float) -> None:
        """Stop a service, or only its main process: PostgreSQL then accepts no clients."""
        self.done["freezes"][kind] += unit.pause(seconds, main_only=random.random() < 0.3)  # noqa: PLR2004

    def _restart(self, _random: Random, kind: str, unit: Unit) -> None:
        self.done["restarts"][kind] += unit.restart()

    def _flush(self, _random: Random) -> None:
        self.done["flushes"]["broker"] += self._site.flush_broker()

    def _leave(self, random: Random) -> None:
        """Stop the portal for some time."""
        [web] = self._site.kinds["web"]
        self.done["away"]["web"] += web.restart(random.uniform(1, 2.5))

    def _deliver_again(self, random: Random) -> None:
        self._copies.deliver(random)

    def _fill_disk(self, agent: Unit) -> None:
        """Limit the size of an agent's files: writes beyond it are cut and fail."""
        for pid in agent.pids():
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (_FILE_BYTES, resource.RLIM_INFINITY))
            self.done["full_disks"]["agent"] += 1

    @staticmethod
    def _empty_disk(agent: Unit) -> None:
        for pid in agent.pids():
            resource.prlimit(pid, resource.RLIMIT_FSIZE, _UNLIMITED)


def _bound(fault: Callable[..., object], *arguments: object) -> Callable[[], object]:
    return lambda: fault(*arguments)
