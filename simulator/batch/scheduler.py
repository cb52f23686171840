"""A batch scheduler: first come, first served, with backfill; nodes are never shared."""

import heapq
from collections.abc import Iterable
from enum import Enum
from itertools import count
from typing import Protocol

import numpy as np

from simulator.batch.jobs import Ints, Job

_CYCLE_S = 60  # between two scheduling runs
_START_DELAY_S = 25  # maximum delay until the batch host starts the job's script
_KILL_S = 9  # from a job's deletion to its end
DELETED = 271  # 256 + SIGTERM


class Campaign(Protocol):
    """Submits jobs one at a time."""

    def next_job(self, now: int, present: int) -> Job | None:
        """Return a new job, or None while the `present` (queued or running) ones are enough."""


class _Event(Enum):
    FIXED_START = 0
    END = 1
    SUBMIT = 2
    DELETE = 3
    CYCLE = 4


class Scheduler:
    """Runs jobs on nodes, and fills in their starts, ends and nodes.

    Args:
        node_count: size of the machine.
        held_back: nodes reserved for jobs with a fixed start.
        opens: first start of a job (epoch seconds).
        closes: end of the run.
        rng: random generator for nodes.
    """

    def __init__(
        self, node_count: int, held_back: int, opens: int, closes: int, rng: np.random.Generator
    ) -> None:
        self._free = np.ones(node_count, dtype=bool)
        self._ordinary_free = node_count - held_back
        self._opens = opens
        self._closes = closes
        self._rng = rng
        self._queue: list[Job] = []
        self._running: set[Job] = set()
        self._present = 0  # jobs of the campaign, queued or running
        self._campaign: set[Job] = set()
        self._events: list[tuple[int, int, _Event, Job | None]] = []
        self._order = count()

    def run(self, jobs: Iterable[Job], fixed: Iterable[Job], campaign: Campaign) -> list[Job]:
        """Run ordinary jobs, jobs with a given start and a campaign's jobs; return the latter.

        Raises:
            ValueError: too few nodes are reserved for the jobs with a fixed start.
        """
        submitted: list[Job] = []
        for job in jobs:
            self._at(job.submitted, _Event.SUBMIT, job)
        for job in fixed:
            self._at(job.started or self._opens, _Event.FIXED_START, job)
        self._at(self._opens, _Event.CYCLE, None)
        while self._events[0][0] < self._closes:  # there is always a next cycle
            now, _, event, subject = heapq.heappop(self._events)
            if subject is not None:
                self._happen(now, event, subject)
                continue
            pilot = campaign.next_job(now, self._present)
            if pilot is not None:
                submitted.append(pilot)
                self._present += 1
                self._campaign.add(pilot)
                self._submit(pilot)
            self._start_what_fits(now)
            self._at(now + _CYCLE_S, _Event.CYCLE, None)
        return submitted

    def _at(self, moment: int, event: _Event, job: Job | None) -> None:
        heapq.heappush(self._events, (moment, next(self._order), event, job))

    def _happen(self, now: int, event: _Event, job: Job) -> None:
        if event is _Event.SUBMIT:
            self._submit(job)
        elif event is _Event.DELETE:
            if job in self._queue:
                self._queue.remove(job)
                self._present -= job in self._campaign
        elif event is _Event.FIXED_START:
            self._start(now, job)
        else:
            self._free[job.nodes] = True
            job.ended = now
            if job in self._running:
                self._running.remove(job)
                self._ordinary_free += job.node_count
                self._present -= job in self._campaign

    def _submit(self, job: Job) -> None:
        self._queue.append(job)
        self._queue.sort(key=lambda queued: (queued in self._campaign, queued.submitted))
        if job.delete_at is not None:
            self._at(job.delete_at, _Event.DELETE, job)

    def _start_what_fits(self, now: int) -> None:
        """Start the head of the queue while it fits, then all jobs that do not delay it (EASY)."""
        while self._queue and self._queue[0].node_count <= self._ordinary_free:
            self._start_queued(now, self._queue[0])
        if not self._queue:
            return
        reserved_at, spare = self._reservation(self._queue[0])
        for job in self._queue[1:]:
            if job.node_count > self._ordinary_free:
                continue
            if now + job.limit_s <= reserved_at:
                self._start_queued(now, job)
            elif job.node_count <= spare:
                spare -= job.node_count
                self._start_queued(now, job)

    def _reservation(self, head: Job) -> tuple[int, int]:
        """Return the latest start of `head`, and the number of nodes that it leaves free."""
        free = self._ordinary_free
        for end, nodes in sorted((_latest_end(job), job.node_count) for job in self._running):
            free += nodes
            if free >= head.node_count:
                return end, free - head.node_count
        raise ValueError(f"job {head.batch_id} requests more nodes than the machine has")

    def _start_queued(self, now: int, job: Job) -> None:
        self._queue.remove(job)
        self._running.add(job)
        self._ordinary_free -= job.node_count
        self._start(now + int(self._rng.integers(1, _START_DELAY_S)), job)

    def _start(self, moment: int, job: Job) -> None:
        job.started = moment
        job.nodes = self._take(job.node_count)
        end = moment + job.runtime_s
        if job.delete_at is not None and job.delete_at + _KILL_S < end:
            end = job.delete_at + _KILL_S
            job.exit_status = DELETED
        self._at(end, _Event.END, job)

    def _take(self, count: int) -> Ints:
        """Return free nodes, adjacent if possible."""
        free = np.flatnonzero(self._free)
        if len(free) < count:
            raise ValueError(f"{count} nodes requested, {len(free)} are free")
        first = self._rng.integers(len(free))
        nodes = np.sort(free[(first + np.arange(count)) % len(free)])
        self._free[nodes] = False
        return nodes


def _latest_end(job: Job) -> int:
    return (job.started or 0) + job.limit_s
