"""A metadata server as a fluid queue: requests of many senders, second by second.

The server does a number of idle-server seconds of work per second. While it keeps up, requests wait
as in a queue with random arrivals. Beyond that, requests are left: each sender has as many of them
at the server as its clients allow, all wait in the same queue, and the rest waits at the clients.
The first requests of the queue have a thread: their waiting is a longer service.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from simulator.batch.jobs import Floats, Ints
from simulator.clock import MICROSECONDS
from simulator.servers import mds

_FULL = 0.98  # share of the capacity beyond which requests are left
_MEAN_S = mds.MAIN_MEAN_US / MICROSECONDS  # work of a request of the usual mix
_STEPS = 24  # of the search for the speed of service
_SLOWEST, _FASTEST = 1e-3, 1e6  # how often a second the requests at the server are served
_LEFT = 0.5  # requests of a sender that count as none


@dataclass(frozen=True)
class Demand:
    """Requests of senders in each second; arrays of shape (n,), in order of time.

    Args:
        second: seconds after the first.
        sender: index of the sender.
        requests: number of requests.
        work_s: their service time on an idle server.
    """

    second: Ints
    sender: Ints
    requests: Floats
    work_s: Floats


@dataclass(frozen=True)
class Episode:
    """Seconds in which requests queue, and the service in them.

    Args:
        start: first second.
        senders: senders with requests in it, ascending.
        served: requests served, shape (seconds, senders).
        wait_s: time of a request before service, shape (seconds,).
        stretch: service time / service time on an idle server, shape (seconds,).
    """

    start: int
    senders: Ints
    served: Floats
    wait_s: Floats
    stretch: Floats

    @property
    def end(self) -> int:
        """Return the second after the last."""
        return self.start + len(self.served)


class Fluid:
    """A server with the demand of its senders.

    Args:
        demand: the demand.
        seconds: number of seconds.
        in_flight: most requests of each sender at the server.
        capacity_per_s: requests of the usual mix per second.
    """

    def __init__(
        self, demand: Demand, seconds: int, in_flight: Floats, capacity_per_s: float
    ) -> None:
        self.demand = demand
        self.seconds = seconds
        self.capacity_per_s = capacity_per_s
        self.power = capacity_per_s * _MEAN_S  # idle seconds per second
        self._in_flight = in_flight
        self._first = np.searchsorted(demand.second, np.arange(seconds + 1))
        senders = len(in_flight)
        requests = np.bincount(demand.sender, demand.requests, senders)
        work_s = np.bincount(demand.sender, demand.work_s, senders)
        self.work_s = work_s / np.maximum(requests, 1)  # of a sender's mean request
        self.load = np.bincount(demand.second, demand.work_s, seconds) / self.power
        self.episodes = list(self._episodes())

    def queue_s(self, load: Floats) -> Floats:
        """Return the waiting of a request at a load below capacity."""
        below = np.minimum(load, _FULL)
        waiting_s: Floats = below / (1 - below) / self.capacity_per_s
        return waiting_s

    def service(self, queue_s: Floats) -> tuple[Floats, Floats]:
        """Return the time before a request has a thread, and the factor of its service time."""
        threads_s = max(mds.MAIN.size / self.capacity_per_s - _MEAN_S, 0.0)
        in_service_s = np.minimum(queue_s, threads_s)
        return queue_s - in_service_s, 1 + in_service_s / _MEAN_S

    def _episodes(self) -> "list[Episode]":
        episodes: list[Episode] = []
        end = 0
        for second in np.flatnonzero(self.load > _FULL).tolist():
            if second >= end:
                episodes.append(self._serve_until_calm(second))
                end = episodes[-1].end
        return episodes

    def _serve_until_calm(self, start: int) -> Episode:
        end = start
        while True:
            end = min(max(2 * end - start, start + 64), self.seconds)
            episode = self.run(start, end)
            if (calm := self._calm_at(episode)) is not None:
                return _head(episode, calm)
            if end == self.seconds:
                return episode

    def _calm_at(self, episode: Episode) -> int | None:
        """Return the seconds until all requests are served and the next second has no queue."""
        arrived = np.cumsum(self._arrivals(episode.senders, episode.start, episode.end), axis=0)
        left = (arrived - np.cumsum(episode.served, axis=0)).max(axis=1)
        quiet = np.append(self.load[episode.start + 1 : episode.end] <= _FULL, False)
        calm = np.flatnonzero((left < _LEFT) & quiet)
        return int(calm[0]) + 1 if len(calm) else None

    def _arrivals(self, senders: Ints, start: int, end: int) -> Floats:
        rows = slice(self._first[start], self._first[end])
        arrivals = np.zeros((end - start, len(senders)))
        column = np.searchsorted(senders, self.demand.sender[rows])
        arrivals[self.demand.second[rows] - start, column] = self.demand.requests[rows]
        return arrivals

    def senders(self, start: int, end: int) -> Ints:
        """Return the senders with requests in some seconds, ascending."""
        active: Ints = np.unique(self.demand.sender[self._first[start] : self._first[end]])
        return active

    def run(self, start: int, end: int) -> Episode:
        """Serve the requests of all senders in ``[start, end)``."""
        senders = self.senders(start, end)
        seconds = self._served(senders, start, end)
        served, queue_s = (np.array(column) for column in zip(*seconds, strict=True))
        return Episode(start, senders, served, *self.service(queue_s))

    def _served(self, senders: Ints, start: int, end: int) -> Iterator[tuple[Floats, float]]:
        """Yield the served requests of each sender, and their waiting, in each second."""
        work_s = self.work_s[senders]
        most = self._in_flight[senders]
        pending = np.zeros(len(senders))
        before_s = 0.0  # time to serve the requests left at the server
        for arrived in self._arrivals(senders, start, end):
            pending += arrived
            load = pending @ work_s / self.power
            is_full = load > _FULL
            served = self._share(pending, most, work_s) if is_full else pending.copy()
            pending = np.maximum(pending - served, 0)
            left_s = float(np.minimum(pending, most) @ work_s / self.power)
            calm_s = 0.0 if is_full else float(self.queue_s(load))
            yield served, max((before_s + left_s) / 2, calm_s)
            before_s = left_s

    def _share(self, pending: Floats, most: Floats, work_s: Floats) -> Floats:
        """Share the capacity of a second between requests at the server, first come first served.

        Args:
            pending: requests of each sender.
            most: of each sender at the server.
            work_s: of a sender's request.
        """
        at_server = np.minimum(pending, most)
        low, high = np.log(_SLOWEST), np.log(_FASTEST)
        for _ in range(_STEPS):
            middle = (low + high) / 2
            served = np.minimum(pending, at_server * np.exp(middle))
            if served @ work_s > _FULL * self.power:
                high = middle
            else:
                low = middle
        shares: Floats = np.minimum(pending, at_server * np.exp(low))
        return shares


def _head(episode: Episode, seconds: int) -> Episode:
    return Episode(
        episode.start,
        episode.senders,
        episode.served[:seconds],
        episode.wait_s[:seconds],
        episode.stretch[:seconds],
    )
