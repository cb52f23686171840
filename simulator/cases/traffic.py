"""What reaches a traced server, how it is served, and who waits because of whom."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simulator import mds, trace
from simulator.activity import Source
from simulator.cases.causes import Cause, Found
from simulator.cases.measures import found
from simulator.clock import MICROSECONDS, MINUTE_S
from simulator.jobs import Floats, Ints
from simulator.server_log import Served
from simulator.trace import Queue

_OTHERS_WAITING_S = 300  # because of one: from so much on it is harm
_MOST_OF_IT = 0.5  # else another one is the reason, and this one is among those that wait
_LOCKED_S = 100  # of server threads that wait for one's locks
_HOST_PER_S, _HOST_WITHIN_S = 25, 5 * MINUTE_S
_LEAST_REQUESTS = 2_000  # fewer make nobody wait
_AFTER_US = 60 * MICROSECONDS  # a source's last request, others may still wait


@dataclass(frozen=True)
class Traffic:
    """All requests to a server in some time, in order of their arrival, and what became of them."""

    sources: Sequence[Source]
    knee_per_s: float
    queue: Queue
    service_us: Ints
    run: mds.Run

    @classmethod
    def of(
        cls,
        sources: Sequence[Source],
        begin: int,
        end: int,
        knee_per_s: float,
        chance: np.random.Generator,
        bin_s: int,
    ) -> "Traffic":
        """Let sources send what they do in ``[begin, end)``."""
        asked = trace.requests(sources, begin, end, 0, chance, bin_s=bin_s)
        line = trace.queue(asked, sources, chance)
        return cls(sources, knee_per_s, line, *line.run(sources, knee_per_s))

    def served(self) -> tuple[Served, Ints]:
        """Return the requests in order of their ends, with their sources."""
        return self.queue.served(self.service_us, self.run)

    def counts(self) -> Ints:
        """Return the requests of each source."""
        counts: Ints = np.bincount(self.queue.source, minlength=len(self.sources))
        return counts

    def others_waiting(self, source: int) -> tuple[Ints, Floats, float] | None:
        """Return how much longer others take because of a source.

        When each of them arrived (epoch microseconds); how much longer they took, so far (seconds);
        and which share that is of all that they wait. None: the source did too little to matter.
        """
        line = self.queue
        mine = np.flatnonzero(line.source == source)
        if len(mine) < _LEAST_REQUESTS:
            return None
        is_idle = self.run.start_us[: mine[0]] == self.run.sent_us[: mine[0]]
        is_main = mds.pools_of(line.opcode[: mine[0]])[0] == mds.MAIN.first_thread
        # With nobody in the queue, serving them anew begins as it was.
        first = np.flatnonzero(is_idle & is_main).max(initial=0)
        last = np.searchsorted(line.ready_us, line.ready_us[mine[-1]] + _AFTER_US)
        others = first + np.flatnonzero(line.source[first:last] != source)
        alone = line.take(others)
        service_us, run = alone.run(self.sources, self.knee_per_s)
        took_us = (self.run.start_us - self.run.sent_us + self.service_us)[others]
        saved_us = took_us - (run.start_us - run.sent_us + service_us)
        waited_us = took_us - alone.idle_us - alone.locked_us
        share = saved_us.sum() / max(waited_us.sum(), 1)
        return alone.ready_us, np.cumsum(saved_us) / MICROSECONDS, share

    def causes(self, source: int, *, is_host: bool) -> list[Found]:
        """Return what a source is near to, or beyond, of what a trace could tell."""
        line = self.queue
        mine = np.flatnonzero(line.source == source)
        if not len(mine):
            return []
        times = line.ready_us[mine] // MICROSECONDS
        locked_s = np.cumsum(line.locked_us[mine]) / MICROSECONDS
        waits = np.cumsum((line.locked_us[mine] > 0).astype(np.int64))
        told = [
            found(
                Cause.LOCKS,
                times,
                locked_s / _LOCKED_S,
                {
                    "locked_s": locked_s,
                    "enqueues_that_wait": waits,
                    "rpcs": np.arange(1, len(mine) + 1),
                },
            )
        ]
        waiting = self.others_waiting(source)
        if waiting:
            moments, waited_s, share = waiting
            told.append(
                found(
                    Cause.HARM,
                    moments // MICROSECONDS,
                    waited_s / _OTHERS_WAITING_S * (share > _MOST_OF_IT),
                    {"others_waiting_s": waited_s},
                )
            )
        if is_host:
            before = np.searchsorted(times, times - _HOST_WITHIN_S)
            per_s = (np.arange(1, len(mine) + 1) - before) / _HOST_WITHIN_S
            told.append(found(Cause.HOST, times, per_s / _HOST_PER_S, {"rpcs_per_s": per_s}))
        return told
