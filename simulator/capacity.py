"""Metadata servers with known capacity under days of load, to validate capacity advice.

The truth is computed from the server's own queue: the load at which its requests take on average
`TIMES` times as long as on an idle server.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.optimize import brentq

from simulator.batch.jobs import Floats, Ints
from simulator.clock import DAY_S, HOUR_S, MICROSECONDS, MINUTE_S
from simulator.formats import mds_stats
from simulator.formats.mds_stats import Counter
from simulator.randomness import stream
from simulator.servers import mds
from simulator.servers.fluid import Demand, Fluid

TIMES = 2.0
DISPATCH_S = 16e-6  # mean time of a request to a thread without a queue
USUAL_MIX = {
    mds.LDLM_ENQUEUE: 0.77,
    mds.MDS_CLOSE: 0.12,
    mds.MDS_GETATTR: 0.05,
    mds.MDS_REINT: 0.03,
    mds.MDS_GETXATTR: 0.03,
}
COSTLY_MIX = {**USUAL_MIX, mds.LDLM_ENQUEUE: 0.30, mds.MDS_REINT: 0.50}
_KINDS = tuple(USUAL_MIX)
_COUNTERS = ("ldlm_ibits_enqueue", "mds_close", "mds_getattr", "mds_reint", "mds_getxattr")
_WORK_S = np.array([mds.mean_us(code) for code in _KINDS]) / MICROSECONDS
_NIGHT = 0.12  # load of the night / load of the day
_BETWEEN_DAYS, _BETWEEN_MINUTES, _BETWEEN_SECONDS = 0.2, 0.08, 0.05  # spread of the load
_STEADINESS = 0.9  # correlation of minutes
_IN_FLIGHT = 4_000.0  # requests of a sender at the server
_SPREAD = 0.5  # of the logarithm of a request's time


@dataclass(frozen=True)
class Scenario:
    """A server and its load; loads are shares of its capacity.

    Args:
        seed: seed of all random values.
        capacity_per_s: requests of the usual mix per second.
        days: number of days.
        peak: load of a usual day at noon.
        storms: number of storms of some minutes.
        storm_load: highest load in a storm.
        convoys: number of times in which requests wait for locks, not for work.
        costly_hours: hours of each day, at its end, with `COSTLY_MIX`.
        restarts: number of restarts, each followed by slow minutes of little load.
    """

    seed: int
    capacity_per_s: float
    days: int
    peak: float
    storms: int = 0
    storm_load: float = 0.97
    convoys: int = 0
    costly_hours: int = 0
    restarts: int = 0


def knee_load(capacity_per_s: float) -> float:
    """Return the true knee: seconds of an idle server's work per second."""
    empty = np.zeros(0, dtype=np.int64)
    nothing = Demand(empty, empty, np.zeros(0), np.zeros(0))
    fluid = Fluid(nothing, 1, np.zeros(1), capacity_per_s)
    work_s = _mean_work_s(USUAL_MIX)

    def excess(load: float) -> float:
        wait_s, stretch = fluid.service(fluid.queue_s(np.array([load])))
        took_s = DISPATCH_S + wait_s[0] + work_s * stretch[0]
        return float(took_s - TIMES * (DISPATCH_S + work_s))

    return float(brentq(excess, 0, 0.97)) * fluid.power


def knee_per_s(capacity_per_s: float) -> float:
    """Return the true knee in requests of `USUAL_MIX` per second."""
    return knee_load(capacity_per_s) / _mean_work_s(USUAL_MIX)


def _mean_work_s(mix: dict[int, float]) -> float:
    return float(np.array(list(mix.values())) @ _WORK_S)


class LoadedServer:
    """A server during a scenario, second by second."""

    def __init__(self, scenario: Scenario) -> None:
        self.seconds = scenario.days * DAY_S
        self._chance = stream(scenario.seed, "capacity")
        at = np.arange(self.seconds)
        load = _usual_load(scenario, at, self._chance)
        for _ in range(scenario.storms):
            part = self._interval(6 * MINUTE_S, 25 * MINUTE_S)
            load[part] = np.maximum(load[part], self._chance.uniform(0.3, scenario.storm_load))
        self.restarts = [int(self._chance.integers(self.seconds)) for _ in range(scenario.restarts)]
        for restart in self.restarts:
            load[restart : restart + 5 * MINUTE_S] = 0.02
        load = np.minimum(load, scenario.storm_load) * self._chance.gamma(
            _BETWEEN_SECONDS**-2, _BETWEEN_SECONDS**2, self.seconds
        )
        is_costly = at % DAY_S >= DAY_S - scenario.costly_hours * HOUR_S
        mixes = np.array([list(mix.values()) for mix in (USUAL_MIX, COSTLY_MIX)])
        mix = mixes[is_costly.astype(int)]  # (seconds, kinds)
        power = scenario.capacity_per_s * mds.MAIN_MEAN_US / MICROSECONDS
        work_s = mix @ _WORK_S
        requests = load * power / work_s
        demand = Demand(at, np.zeros(self.seconds, dtype=np.int64), requests, requests * work_s)
        fluid = Fluid(demand, self.seconds, np.array([_IN_FLIGHT]), scenario.capacity_per_s)
        wait_s, stretch = fluid.service(fluid.queue_s(fluid.load))
        for episode in fluid.episodes:
            span = slice(episode.start, episode.end)
            requests[span] = episode.served.sum(axis=1)
            wait_s[span], stretch[span] = episode.wait_s, episode.stretch
        for restart in self.restarts:
            wait_s[restart : restart + 5 * MINUTE_S] += 0.05  # clients recover
        self.wait_s = wait_s + DISPATCH_S
        self.requests: Ints = self._chance.poisson(requests[:, None] * mix)
        noise = self._chance.standard_normal(self.requests.shape)
        noise /= np.sqrt(np.maximum(self.requests, 1))
        mean_s = _WORK_S * stretch[:, None] * (1 + _SPREAD * noise)
        self.service_s: Floats = self.requests * np.maximum(mean_s, 0)
        for _ in range(scenario.convoys):
            part = self._interval(10 * MINUTE_S, 60 * MINUTE_S)
            self.service_s[part, 0] += self.requests[part, 0] * 0.2 * mds.BLOCKED_MEAN_US / 1e6

    def _interval(self, shortest: int, longest: int) -> slice:
        start = int(self._chance.integers(self.seconds - longest))
        return slice(start, start + int(self._chance.integers(shortest, longest)))

    def totals(self, width_s: int) -> pl.DataFrame:
        """Return counts and times of RPCs by window: second, opcode, count, service and total µs.

        The windows are complete.
        """
        shape = (self.seconds // width_s, width_s, len(_KINDS))
        total_s = self.service_s + self.requests * self.wait_s[:, None]
        columns = {
            name: values.reshape(shape).sum(axis=1).ravel()
            for name, values in (
                ("count", self.requests),
                ("service_us", np.rint(self.service_s * MICROSECONDS).astype(np.int64)),
                ("total_us", np.rint(total_s * MICROSECONDS).astype(np.int64)),
            )
        }
        seconds = np.repeat(np.arange(shape[0]) * width_s, len(_KINDS))
        return pl.DataFrame({"second": seconds, "opcode": np.tile(_KINDS, shape[0]), **columns})

    def reads(self, start: int, every_s: int, *, timed: bool) -> Iterator[tuple[int, str]]:
        """Yield time and text of reads of the service statistics.

        Args:
            start: epoch seconds of the first second.
            every_s: seconds between two reads.
            timed: whether the server's version times the handling of all kinds (from 2.14 on).
        """
        seconds = np.arange(0, self.seconds + 1, every_s)
        done, waited_us, handled_us = (
            np.concatenate([np.zeros((1, *values.shape[1:])), np.cumsum(values, axis=0)])[seconds]
            for values in (
                self.requests,
                self.requests.sum(axis=1) * self.wait_s * MICROSECONDS,
                self.service_s * MICROSECONDS,
            )
        )
        for n, second in enumerate(seconds.tolist()):
            began = max((at for at in self.restarts if at <= second), default=-DAY_S)
            base = np.searchsorted(seconds, began) if began > 0 else 0
            counts = (done[n] - done[base]).astype(int).tolist()
            times = np.rint(handled_us[n] - handled_us[base]).astype(int).tolist()
            everything = sum(counts)
            waits = Counter(
                "req_waittime", "usec", everything, 4, 900_000, int(waited_us[n] - waited_us[base])
            )
            kinds = (
                Counter(name, "usec", count, 9, 900_000, us)
                if timed
                else Counter(name, "reqs", count, 1, 1, count)
                for name, count, us in zip(_COUNTERS, counts, times, strict=True)
            )
            text = mds_stats.service(
                "mdt", (start + second) * MICROSECONDS, start + began, [waits, *kinds]
            )
            yield start + second, text


def _usual_load(scenario: Scenario, at: Ints, chance: np.random.Generator) -> Floats:
    days = np.clip(1 + _BETWEEN_DAYS * chance.standard_normal(scenario.days), 0.4, 1.6)
    hours = _NIGHT + (1 - _NIGHT) * np.sin(np.pi * (at % DAY_S) / DAY_S) ** 2
    minutes = np.zeros(len(at) // MINUTE_S)
    steps = _BETWEEN_MINUTES * chance.standard_normal(len(minutes))
    for n in range(1, len(minutes)):
        minutes[n] = _STEADINESS * minutes[n - 1] + steps[n]
    load: Floats = scenario.peak * days[at // DAY_S] * hours * np.exp(np.repeat(minutes, MINUTE_S))
    return load
