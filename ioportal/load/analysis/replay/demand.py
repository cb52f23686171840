"""The demand on a metadata server: what each sender asked for, in steps of equal width."""

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
    "counted": pl.Float64(),  # share of requests of users: nobody waits for the others
    "clients": pl.Float64(),  # that sent them
}
BLOCKED_TIMES = 10.0  # slower than the busiest: service time beyond is blocked on locks
_US_PER_S = 1e6
_LEAST_WORK_S = 1e-6  # of a request
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
            return np.bincount(cell, amounts, shape[0] * shape[1]).reshape(shape).astype(float)

        work, service, took = table(work_s), table(service_s), table(took_s)
        busiest = np.arange(len(work)), work.argmax(axis=1)
        stretch = np.maximum(service[busiest] / np.maximum(work[busiest], _LEAST_WORK_S), 1)
        blocked_s = np.maximum(service - BLOCKED_TIMES * stretch[:, None] * work, 0)
        waited_s = np.maximum(took - work - blocked_s, 0)
        arrived = table(requests)
        at_server_s = took - blocked_s
        delay = np.divide(at_server_s, arrived, out=np.zeros(shape), where=arrived > 0) / width_s
        ended = _ended(arrived, delay)
        most = np.zeros(len(senders))
        np.maximum.at(most, sender, clients)
        return cls(
            start,  # type: ignore[arg-type]  # of a column of times
            width_s,
            senders.to_list(),
            arrived,
            work,
            ended,
            _ended(work, delay),
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


def _ended(arrived: Floats, delay: Floats) -> Floats:
    """Return amounts by the step in which they ended: a sender's requests end in their order.

    Args:
        arrived: amounts by step of arrival and sender.
        delay: the mean time from arrival to end, in steps.
    """
    edges = np.arange(len(arrived) + 1.0)
    result = np.empty_like(arrived)
    for sender in range(arrived.shape[1]):
        active = np.flatnonzero(arrived[:, sender])
        if not len(active):
            result[:, sender] = 0
            continue
        middles = active + 0.5
        late = np.interp(edges, middles, delay[active, sender])
        total = np.concatenate([[0.0], np.cumsum(arrived[:, sender])])
        result[:, sender] = np.diff(np.interp(edges, np.maximum.accumulate(edges + late), total))
    return result
