"""The demand on a metadata server: the requests of each sender, in steps of equal width."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

if TYPE_CHECKING:
    from datetime import datetime

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

REQUESTS = {  # of one server; at most one row of a sender in a step
    "start": pl.Datetime("us", "UTC"),  # of the step in which they arrived
    "sender": pl.String(),
    "requests": pl.Float64(),
    "work_us": pl.Float64(),  # their time on an idle server
    "service_us": pl.Float64(),  # time in handlers
    "took_us": pl.Float64(),  # arrival to end
    "counted": pl.Float64(),  # share of requests of users: no user waits for the others
    "clients": pl.Float64(),  # that sent them
}
BLOCKED_TIMES = 10.0  # slower than the busiest: service time beyond is blocked on locks
_US_PER_S = 1e6
_LEAST_WORK_S = 1e-6  # of a request
_LARGE_SHARE = 0.01  # of the requests
_SWEEPS = 20  # a burst in one step needs as many
_PRECISION = 0.05  # of a step
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Demand:
    """Requests by step and sender.

    Args:
        start: start of the first step.
        width_s: width of a step.
        senders: names, in order.
        requests: requests that arrived; shape (steps, senders).
        work_s: their time on an idle server; the same shape.
        ended: requests that ended, by step and sender.
        served_s: their work.
        flight: requests at the server, on average; by step and sender.
        waited_s: time beyond that on an idle server and blocked on locks, by step of arrival and
            sender.
        counted_s: the part of it that is of users' requests.
        clients: clients of each sender.
    """

    start: datetime
    width_s: float
    senders: list[str]
    requests: Floats
    work_s: Floats
    ended: Floats
    served_s: Floats
    flight: Floats
    waited_s: Floats
    counted_s: Floats
    clients: Floats

    @classmethod
    def of(cls, rows: pl.DataFrame, width: timedelta) -> Demand:
        """Return the demand of requests: columns of `REQUESTS`, at least one row."""
        senders = rows["sender"].unique().sort()
        sender = rows["sender"].replace_strict(senders, np.arange(len(senders))).to_numpy()
        start = rows["start"].min()
        step = (rows["start"] - start).dt.total_microseconds().to_numpy() // (width // _MICROSECOND)
        width_s = width.total_seconds()
        requests, counted, clients = (
            rows[name].to_numpy() for name in ("requests", "counted", "clients")
        )
        work_s, service_s, took_s = (
            rows[name].to_numpy() / _US_PER_S for name in ("work_us", "service_us", "took_us")
        )
        longest = took_s / np.maximum(requests, 1e-9) / width_s
        shape = int(np.ceil((step + longest).max())) + 2, len(senders)
        cell = step * shape[1] + sender

        def table(amounts: Floats) -> Floats:
            sums = np.bincount(cell, amounts, shape[0] * shape[1]).reshape(shape)
            return sums.astype(float, copy=False)

        work, service, took = table(work_s), table(service_s), table(took_s)
        busiest = np.arange(len(work)), work.argmax(axis=1)
        stretch = np.maximum(service[busiest] / np.maximum(work[busiest], _LEAST_WORK_S), 1)
        blocked_s = np.maximum(service - BLOCKED_TIMES * stretch[:, None] * work, 0)
        waited_s = np.maximum(took - work - blocked_s, 0)
        arrived = table(requests)
        ended, served = _ended(arrived, work, (took - blocked_s) / width_s)
        most = np.zeros(len(senders))
        np.maximum.at(most, sender, clients)
        return cls(
            start,  # type: ignore[arg-type]  # of a column of times
            width_s,
            senders.to_list(),
            arrived,
            work,
            ended,
            served,
            np.maximum(np.cumsum(arrived - ended, axis=0), 0),
            waited_s,
            waited_s * table(counted),
            np.maximum(most, 1),
        )

    @property
    def request_s(self) -> Floats:
        """The work of a request of each sender."""
        requests = self.requests.sum(axis=0)
        work_s = self.work_s.sum(axis=0)
        each_s: Floats = np.maximum(work_s / np.maximum(requests, 1e-9), _LEAST_WORK_S)
        return each_s


def _ended(arrived: Floats, work: Floats, stayed: Floats) -> tuple[Floats, Floats]:
    """Return the requests and the work that ended in each step: a sender's end in their order.

    A server is as slow for all, except for large senders.

    Args:
        arrived: requests by step of arrival and sender.
        work: their work.
        stayed: the sum of their times from arrival to end, in steps.
    """
    steps = np.arange(len(arrived))
    amounts = arrived.sum(axis=1)
    known = np.flatnonzero(amounts)
    of_all = np.interp(steps, known, stayed.sum(axis=1)[known] / amounts[known], left=0.0)
    until = _arrived_until(of_all)
    ended, served = _moved(arrived, until), _moved(work, until)
    of_sender = arrived.sum(axis=0)
    for sender in np.flatnonzero(of_sender >= _LARGE_SHARE * of_sender.sum()).tolist():
        mine = arrived[:, sender]
        delay = np.divide(stayed[:, sender], mine, out=of_all.copy(), where=mine > 0)
        until = _arrived_until(delay)
        ended[:, sender] = _moved(mine[:, None], until)[:, 0]
        served[:, sender] = _moved(work[:, sender, None], until)[:, 0]
    return ended, served


def _arrived_until(delay: Floats) -> Floats:
    """Return until when the requests had arrived that have ended by each edge of the steps.

    Args:
        delay: the mean time from arrival to end, by step of arrival, in steps.
    """
    edges = np.arange(len(delay) + 1.0)
    until: Floats = np.interp(edges, np.maximum.accumulate(edges + _at_edges(delay)), edges)
    return until


def _moved(arrived: Floats, until: Floats) -> Floats:
    """Return by step of their end what arrived, by sender; see `_arrived_until`."""
    whole = np.minimum(until.astype(int), len(arrived) - 1)
    total = np.zeros((len(arrived) + 1, arrived.shape[1]))
    np.cumsum(arrived, axis=0, out=total[1:])
    moved: Floats = np.diff(total[whole] + (until - whole)[:, None] * arrived[whole], axis=0)
    return moved


def _at_edges(means: Floats) -> Floats:
    """Return values at the edges of steps, of which the means are known; none is negative."""
    padded = np.concatenate([means[:1], means, means[-1:]])
    edges: Floats = (padded[:-1] + padded[1:]) / 2
    for _ in range(_SWEEPS):
        error = np.pad(means - (edges[:-1] + edges[1:]) / 2, 1)
        if np.abs(error).max() < _PRECISION:
            break
        edges = np.maximum(edges + (error[:-1] + error[1:]) / 2, 0)
    return edges
