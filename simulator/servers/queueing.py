"""A metadata server as a queue of single requests.

The server does a number of idle-server seconds of work per second, one request after the other. The
time of a request at the server is its waiting for its turn, and its service time on an idle server.
The first requests of a queue have a thread: their waiting is a longer service. Each sender has a
limited number of requests at the server: the next one is sent when the request that many places
before it is answered.

While no sender is at its limit, the turns of all requests are a maximum and a sum over arrays.
Elsewhere, requests are served one by one.
"""

import heapq
import math
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from simulator.batch.jobs import Floats, Ints
from simulator.servers import mds

Bools = NDArray[np.bool_]

QUEUE_S = 0.1  # of demanded work before a request: it is in a queue
_CALM_S = 1.0  # between two queues
_SOON_S = 0.02  # after a queue, answers to its requests may still be due
_ROUNDING_S = 1e-9


class Discipline(StrEnum):
    """Order of service in queues.

    FIFO: order of arrival.
    SHARING: requests with a thread share the server; the others wait in order of arrival.
    ROUND_ROBIN: one request of each client in turn, as with the policy CRR-N of Lustre's NRS.
    """

    FIFO = "fifo"
    SHARING = "sharing"
    ROUND_ROBIN = "round robin"


@dataclass(frozen=True)
class Requests:
    """Requests of all senders; arrays of shape (n,).

    Args:
        demand_s: when the sender would send it without a limit, ascending.
        sender: index of its sender.
        client: index of the client that sends it.
        idle_s: service time on an idle server: the server's work.
        locked_s: additional time on its thread, until others release their locks.
    """

    demand_s: Floats
    sender: Ints
    client: Ints
    idle_s: Floats
    locked_s: Floats

    def __len__(self) -> int:
        """Return the number of requests."""
        return len(self.sender)

    def take(self, rows: Ints | Bools | slice) -> "Requests":
        """Return some requests, in order of demand."""
        return Requests(*(getattr(self, column.name)[rows] for column in fields(self)))


@dataclass(frozen=True)
class Served:
    """The service of requests; arrays of shape (n,).

    Args:
        arrival_s: arrival at the server.
        thread_s: when it has a thread.
        turn_s: when the server has done all work before it.
        answer_s: end of its service.
        queues: rows of each queue.
    """

    arrival_s: Floats
    thread_s: Floats
    turn_s: Floats
    answer_s: Floats
    queues: list[slice]


@dataclass(frozen=True)
class Server:
    """A metadata server.

    Args:
        power: idle-server seconds of work per second.
        in_flight: most requests of each sender at the server.
        discipline: order of service in queues.
        threads: number of threads.
    """

    power: float
    in_flight: Ints
    discipline: Discipline = Discipline.FIFO
    threads: int = mds.MAIN.size

    def serve(self, requests: Requests) -> Served:
        """Serve requests, beginning with an idle server."""
        if not len(requests):
            return Served(np.empty(0), np.empty(0), np.empty(0), np.empty(0), [])
        occupies_s = requests.idle_s / self.power
        takes_s = requests.idle_s + requests.locked_s
        # As if no sender had a limit: with limits, the server is busy at the same times.
        leave_s = _leave_in_turn(requests.demand_s, occupies_s)
        turn_s = np.maximum(leave_s - occupies_s, requests.demand_s)
        periods = _Periods(requests.demand_s, leave_s)
        queues = periods.queues(turn_s - requests.demand_s)
        served = Served(
            requests.demand_s.copy(),
            np.maximum(requests.demand_s, _free_thread(leave_s, self.threads)),
            turn_s,
            turn_s + takes_s,
            list(periods.spans(queues)),
        )
        before = _sent_before(requests.sender, self.in_flight)
        one_by_one = queues & (self.discipline is not Discipline.FIFO)
        finished: set[tuple[int, int]] = set()
        while True:
            overrun = []
            for rows in periods.spans(one_by_one):
                if (rows.start, rows.stop) in finished:
                    continue
                finished.add((rows.start, rows.stop))
                line = _Line(
                    requests.take(rows), before[rows] - rows.start, occupies_s[rows], self.threads
                )
                is_queue = queues[periods.number[rows]].any()
                line.serve(self.discipline if is_queue else Discipline.FIFO)
                line.write(served, rows)
                if (line.leave_s[-1] > requests.demand_s[rows.stop : rows.stop + 1]).any():
                    overrun.append(rows.stop)
            limited = (before >= 0) & (served.answer_s[before] > served.arrival_s + _ROUNDING_S)
            first = np.concatenate([before[limited], np.array(overrun, dtype=np.int64)])
            last = np.concatenate([np.flatnonzero(limited), np.array(overrun, dtype=np.int64)])
            more = periods.through(first, last) & ~one_by_one
            if not more.any():
                return served
            one_by_one |= more


class _Periods:
    """Times in which the server is always busy.

    Args:
        demand_s: shape (n,), ascending.
        leave_s: when the server has done all work until each request, shape (n,).
    """

    def __init__(self, demand_s: Floats, leave_s: Floats) -> None:
        begins = np.concatenate([[True], demand_s[1:] >= leave_s[:-1] - _ROUNDING_S])
        self.number: Ints = np.cumsum(begins) - 1  # of each request
        self._first = np.flatnonzero(begins)
        self._edges = np.append(self._first, len(demand_s))
        self._begin_s, self._end_s = demand_s[self._first], leave_s[self._edges[1:] - 1]

    def queues(self, waiting_s: Floats) -> Bools:
        """Return which periods belong to queues, by the waiting of each request."""
        waited = np.flatnonzero(np.maximum.reduceat(waiting_s, self._first) > QUEUE_S)
        near = np.flatnonzero(self._begin_s[waited[1:]] - self._end_s[waited[:-1]] < _CALM_S)
        return self._from_to(
            np.concatenate([waited, waited[near]]), np.concatenate([waited, waited[near + 1]])
        )

    def through(self, first: Ints, last: Ints) -> Bools:
        """Return the periods from each first to each last request, and shortly after."""
        soon = self._end_s[self.number[last]] + _SOON_S
        return self._from_to(self.number[first], np.searchsorted(self._begin_s, soon) - 1)

    def _from_to(self, first: Ints, last: Ints) -> Bools:
        count = len(self._first) + 1
        steps = np.bincount(first, minlength=count) - np.bincount(last + 1, minlength=count)
        chosen: Bools = np.cumsum(steps)[:-1] > 0
        return chosen

    def spans(self, chosen: Bools) -> Iterator[slice]:
        """Yield the rows of neighbouring periods."""
        edges = np.flatnonzero(np.diff(chosen, prepend=False, append=False))
        for first, after in self._edges[edges].reshape(-1, 2).tolist():
            yield slice(first, after)


def _leave_in_turn(arrival_s: Floats, occupies_s: Floats) -> Floats:
    """Return when the server has done all work until each request: Lindley's recursion."""
    done_s = np.cumsum(occupies_s)
    leave_s: Floats = np.maximum.accumulate(arrival_s - (done_s - occupies_s)) + done_s
    return leave_s


def _free_thread(leave_s: Floats, threads: int) -> Floats:
    """Return when a thread is free for each request: one that leaves the server has none."""
    free_s = np.full_like(leave_s, -np.inf)
    free_s[threads:] = leave_s[:-threads]
    return free_s


def _sent_before(sender: Ints, in_flight: Ints) -> Ints:
    """Return the request that must be answered before each one is sent; -1: none."""
    order = np.argsort(sender, kind="stable")
    by_sender = sender[order]
    first = np.searchsorted(by_sender, by_sender)
    places = np.arange(len(sender)) - in_flight[by_sender]
    before = np.full(len(sender), -1)
    before[order] = np.where(places >= first, order[np.maximum(places, 0)], -1)
    return before


class _Line:
    """Requests that are served one by one.

    Args:
        requests: requests in order of demand.
        before: the request that must be answered before each one is sent; negative: none.
        occupies_s: time that the server needs for the work of each.
        threads: number of threads.
    """

    def __init__(self, requests: Requests, before: Ints, occupies_s: Floats, threads: int) -> None:
        count = len(requests)
        order = np.argsort(requests.sender, kind="stable")
        is_next = np.diff(requests.sender[order]) == 0
        following = np.full(count, -1)
        following[order[:-1][is_next]] = order[1:][is_next]
        self._following: list[int] = following.tolist()  # of the same sender
        self._before: list[int] = before.tolist()
        self._demand_s: list[float] = requests.demand_s.tolist()
        self._client: list[int] = requests.client.tolist()
        self._occupies_s: list[float] = occupies_s.tolist()
        self._takes_s: list[float] = (requests.idle_s + requests.locked_s).tolist()
        self._threads = threads
        self._arrival_s = [0.0] * count
        self._turn_s = [0.0] * count
        self._answer_s = [np.nan] * count
        self._order: list[int] = []  # in which requests have a thread
        self.leave_s: list[float] = []  # ends of their work, ascending
        first = np.concatenate([[True], ~is_next])
        self._coming = [(self._demand_s[row], row) for row in order[first].tolist()]
        heapq.heapify(self._coming)  # the next request of each sender
        self._held: dict[int, tuple[int, float]] = {}  # by the request that must be answered first

    def serve(self, discipline: Discipline) -> None:
        """Serve all requests."""
        if discipline is Discipline.FIFO:
            self._serve_in_order()
        elif discipline is Discipline.SHARING:
            self._serve_together()
        else:
            self._serve_clients_in_turn()

    def write(self, served: Served, rows: slice) -> None:
        """Write the service of all requests to some rows."""
        arrival_s = np.array(self._arrival_s)
        thread_s = np.empty_like(arrival_s)
        thread_s[self._order] = _free_thread(np.array(self.leave_s), self._threads)
        served.arrival_s[rows] = arrival_s
        served.thread_s[rows] = np.maximum(arrival_s, thread_s)
        served.turn_s[rows] = self._turn_s
        served.answer_s[rows] = self._answer_s

    def _serve_in_order(self) -> None:
        # In order of arrival, each answer is known immediately. No calls: millions of requests.
        coming, arrivals, answers, turns = (
            self._coming,
            self._arrival_s,
            self._answer_s,
            self._turn_s,
        )
        demand, before, following = self._demand_s, self._before, self._following
        occupies, takes = self._occupies_s, self._takes_s
        free_s = -np.inf
        while coming:
            arrival_s, row = coming[0]
            arrivals[row] = arrival_s
            turns[row] = turn_s = arrival_s if arrival_s > free_s else free_s  # noqa: FURB136
            free_s = turn_s + occupies[row]
            answers[row] = turn_s + takes[row]
            self._order.append(row)
            self.leave_s.append(free_s)
            following_row = following[row]
            if following_row < 0:
                heapq.heappop(coming)
                continue
            sent_s = demand[following_row]
            if before[following_row] >= 0 and answers[before[following_row]] > sent_s:
                sent_s = answers[before[following_row]]
            sent_s = max(sent_s, arrival_s)
            heapq.heapreplace(coming, (sent_s, following_row))

    def _serve_clients_in_turn(self) -> None:
        waiting: defaultdict[int, deque[int]] = defaultdict(deque)
        clients: deque[int] = deque()
        now_s = -np.inf
        while self._coming or clients:
            if not clients:
                now_s = max(now_s, self._coming[0][0])
            while self._coming and self._coming[0][0] <= now_s:
                row = self._arrive()
                client = self._client[row]
                if not waiting[client]:
                    clients.append(client)
                waiting[client].append(row)
            client = clients.popleft()
            row = waiting[client].popleft()
            if waiting[client]:
                clients.append(client)
            now_s += self._occupies_s[row]
            self._order.append(row)
            self._leave(row, now_s)

    def _serve_together(self) -> None:
        waiting: deque[int] = deque()
        served: list[tuple[float, int]] = []  # with the work that each request with a thread has
        each_s = now_s = 0.0  # work done for each request that always had a thread
        while self._coming or served:
            leave_s = now_s + (served[0][0] - each_s) * len(served) if served else np.inf
            if self._coming and self._coming[0][0] < leave_s:
                arrival_s = max(self._coming[0][0], now_s)
                each_s += (arrival_s - now_s) / max(len(served), 1)
                now_s = arrival_s
                waiting.append(self._arrive())
            else:
                each_s, row = heapq.heappop(served)
                now_s = leave_s
                self._leave(row, now_s)
            if waiting and len(served) < self._threads:
                row = waiting.popleft()
                self._order.append(row)
                heapq.heappush(served, (each_s + self._occupies_s[row], row))

    def _arrive(self) -> int:
        """Return the next request that reaches the server; its sender's following one is sent."""
        arrival_s, row = heapq.heappop(self._coming)
        self._arrival_s[row] = arrival_s
        following = self._following[row]
        if following >= 0:
            self._send(following, arrival_s)
        return int(row)

    def _send(self, row: int, earliest_s: float) -> None:
        """Send a request as soon as the one before it is answered."""
        before = self._before[row]
        moment_s = max(self._demand_s[row], earliest_s)
        if before >= 0:
            if math.isnan(self._answer_s[before]):
                self._held[before] = row, moment_s
                return
            moment_s = max(moment_s, self._answer_s[before])
        heapq.heappush(self._coming, (moment_s, row))

    def _leave(self, row: int, leave_s: float) -> None:
        """End the work for a request, and answer it."""
        turn_s = self._turn_s[row] = leave_s - self._occupies_s[row]
        answer_s = self._answer_s[row] = turn_s + self._takes_s[row]
        self.leave_s.append(leave_s)
        if held := self._held.pop(row, None):
            following, moment_s = held
            heapq.heappush(self._coming, (max(moment_s, answer_s), following))
