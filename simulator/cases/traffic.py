"""Requests to a traced server, their service, and the waiting time that each source causes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simulator.activity import Source
from simulator.batch.jobs import Floats, Ints
from simulator.cases import causes
from simulator.cases.causes import Cause, Occurrence
from simulator.cases.filesystems import Filesystem
from simulator.cases.measures import occurrence
from simulator.cases.scene import Scene
from simulator.clock import MICROSECONDS
from simulator.randomness import stream
from simulator.servers import mds, trace
from simulator.servers.server_log import Served
from simulator.servers.trace import Queue

_LEAST_REQUESTS = 2_000  # fewer cause no waiting
_MOST = 0.9  # of the total waiting time
_AFTER_US = 60 * MICROSECONDS  # waiting of others after a source's last request


@dataclass(frozen=True)
class Traffic:
    """All requests to a server in an interval, in order of arrival, and their service."""

    sources: Sequence[Source]
    knee_per_s: float
    queue: Queue
    service_us: Ints
    run: mds.Run

    @classmethod
    def draw(
        cls,
        scene: Scene,
        filesystem: Filesystem,
        begin: int,
        end: int,
        *,
        bin_s: int,
    ) -> "Traffic":
        """Draw all requests in ``[begin, end)``."""
        sources = scene.sources(filesystem)
        chance = stream(scene.seed, f"cases: requests to {filesystem.name} from {begin}")
        requests = trace.requests(sources, begin, end, 0, chance, bin_s=bin_s)
        line = trace.queue(requests, sources, chance)
        return cls(sources, scene.knee_per_s, line, *line.run(sources, scene.knee_per_s))

    def served(self) -> tuple[Served, Ints]:
        """Return the requests in order of their ends, with their sources."""
        return self.queue.served(self.service_us, self.run)

    def counts(self) -> Ints:
        """Return the requests of each source."""
        counts: Ints = np.bincount(self.queue.source, minlength=len(self.sources))
        return counts

    def others_waiting(self, source: int) -> tuple[Ints, Floats, float] | None:
        """Return the additional waiting of others because of a source.

        The arrival of each request of others (epoch microseconds), the cumulative additional time
        (seconds), and the source's share of the server's time meanwhile. None: too few requests.
        """
        line = self.queue
        mine = np.flatnonzero(line.source == source)
        if len(mine) < _LEAST_REQUESTS:
            return None
        first = self._idle_before(int(mine[0]))
        last = np.searchsorted(line.ready_us, line.ready_us[mine[-1]] + _AFTER_US)
        other_rows = first + np.flatnonzero(line.source[first:last] != source)
        alone = line.take(other_rows)
        service_us, run = alone.run(self.sources, self.knee_per_s)
        took_us = (self.run.start_us - self.run.sent_us + self.service_us)[other_rows]
        saved_us = took_us - (run.start_us - run.sent_us + service_us)
        waited_s = np.cumsum(saved_us) / MICROSECONDS
        return alone.ready_us, waited_s, self._share_while(source, alone.ready_us, waited_s)

    def _share_while(self, source: int, ready_us: Ints, waited_s: Floats) -> float:
        """Return a source's share of the server's time while others wait for it."""
        worst = ready_us[np.abs(waited_s / max(waited_s[-1], 1.0) - 0.5) < _MOST / 2]
        if not len(worst):
            return 0.0
        first, last = np.searchsorted(self.queue.ready_us, [worst[0], worst[-1]])
        busy_us = self.service_us[first : last + 1]
        return float(busy_us[self.queue.source[first : last + 1] == source].sum() / busy_us.sum())

    def _idle_before(self, request: int) -> int:
        """Return the last request before this one without a queue: the server was idle then."""
        at_once = self.run.start_us[:request] == self.queue.ready_us[:request]
        is_main = mds.pools_of(self.queue.opcode[:request])[0] == mds.MAIN.first_thread
        return int(np.flatnonzero(at_once & is_main).max(initial=0))

    def occurrences(self, source: int, *, is_host: bool) -> list[Occurrence]:
        """Return the causes near or above the definition of abuse in a trace."""
        line = self.queue
        mine = np.flatnonzero(line.source == source)
        if not len(mine):
            return []
        times = line.ready_us[mine] // MICROSECONDS
        locked_s = np.cumsum(line.locked_us[mine]) / MICROSECONDS
        waits = np.cumsum((line.locked_us[mine] > 0).astype(np.int64))
        results = [
            occurrence(
                Cause.LOCKS,
                times,
                locked_s / causes.LOCKED_S,
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
            results.append(
                occurrence(
                    Cause.HARM,
                    moments // MICROSECONDS,
                    waited_s / causes.OTHERS_WAITING_S * (share > causes.HARMFUL_SHARE),
                    {"others_waiting_s": waited_s, "share": np.full(len(waited_s), share)},
                )
            )
        if is_host:
            before = np.searchsorted(times, times - causes.HOST_WITHIN_S)
            per_s = (np.arange(1, len(mine) + 1) - before) / causes.HOST_WITHIN_S
            results.append(
                occurrence(Cause.HOST, times, per_s / causes.HOST_PER_S, {"rpcs_per_s": per_s})
            )
        return results
