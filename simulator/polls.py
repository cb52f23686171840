"""When the collectors read the servers' counters."""

from dataclasses import dataclass

import numpy as np

from simulator.clock import local
from simulator.jobs import Ints

_EVERY_S = 600
_EVERY_S_IN_CRISIS = 60
_DENSE = (local(2017, 7, 6, "09:40:00"), local(2017, 7, 6, "10:40:00"))
GAP = (local(2017, 7, 7, "08:20:00"), local(2017, 7, 7, "09:00:00"))  # no read in between
MDT_REMOUNT = local(2017, 7, 7, "14:47:30")
_LATENESS_S = 9  # a server's timer is late by the same time always, up to this


@dataclass(frozen=True)
class Schedule:
    """The reads of one server, epoch seconds."""

    moments: Ints

    def covered_share(self, start: int, end: int) -> float:
        """Return the part of ``[start, end)`` between reads no farther apart than usual."""
        before, after = self.moments[:-1], self.moments[1:]
        usual = after - before < 1.5 * _EVERY_S
        inside = np.minimum(after, end) - np.maximum(before, start)
        return float(np.clip(inside, 0, None)[usual].sum() / (end - start))


def schedule(start: int, end: int, rng: np.random.Generator) -> Schedule:
    """Return one server's reads from `start` to `end`; the last one sees all that happened."""
    usual = np.arange(start, end + 1, _EVERY_S)
    moments = np.union1d(usual, np.arange(*_DENSE, _EVERY_S_IN_CRISIS))
    moments = moments[(moments <= GAP[0]) | (moments >= GAP[1])]
    return Schedule(moments + int(rng.integers(1, _LATENESS_S)))
