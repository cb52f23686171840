"""The operations of a sender, counted when the server has answered its requests."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from simulator.activity import MDT_KINDS, OPEN, Source
from simulator.batch.jobs import Floats, Ints
from simulator.servers.counters import NEVER

FAILED_OPENS = len(MDT_KINDS)  # an additional column
COLUMNS = FAILED_OPENS + 1

Number = TypeVar("Number", np.int64, np.float64)


@dataclass(frozen=True)
class Operations:
    """Operations of answered requests, ascending by second; arrays of shape (n,).

    Args:
        second: when it was answered.
        sender: index of its sender.
        client: index into site.NIDS.
        column: index into MDT_KINDS; an open that failed has another row of FAILED_OPENS.
        spent: its service time, as a multiple of an idle server's.
    """

    second: Ints
    sender: Ints
    client: Ints
    column: Ints
    spent: Floats


@dataclass(frozen=True, eq=False)
class Answered(Source):
    """A sender whose metadata operations are counted from its answered requests.

    Args:
        seconds: seconds in which requests were answered, ascending; shape (n,).
        done: operations until the end of each, after a row of zeros; shape (n + 1, COLUMNS).
        spent: their service times, as multiples of an idle server's; of the same shape.
    """

    seconds: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    done: Ints = field(default_factory=lambda: np.zeros((1, COLUMNS), dtype=np.int64))
    spent: Floats = field(default_factory=lambda: np.zeros((1, COLUMNS)))

    @property
    def start(self) -> int:
        """Return the start of its activity."""
        first: int = super().start
        return min(first, int(self.seconds[0])) if len(self.seconds) else first

    @property
    def end(self) -> int:
        """Return the end of its activity: delayed requests end after its last burst."""
        last: int = super().end
        return max(last, int(self.seconds[-1]) + 1) if len(self.seconds) else last

    def mdt_counts(self, times: Ints) -> Ints:
        """Return the operations done before each of `times`: shape (times, MDT_KINDS)."""
        return self.mdt_counted(times, NEVER)

    def mdt_counted(self, times: Ints, failures_until: int) -> Ints:
        """Return the operations that the MDT counted; failed opens count until a given time."""
        return self._counted(self.done, times, failures_until)

    def mdt_times(self, times: Ints, failures_until: int) -> Floats:
        """Return the service times of these operations, as multiples of an idle server's."""
        return self._counted(self.spent, times, failures_until)

    def _counted(
        self, totals: NDArray[Number], times: Ints, failures_until: int
    ) -> NDArray[Number]:
        now, then = (
            totals[np.searchsorted(self.seconds, moments)]
            for moments in (times, np.minimum(times, failures_until))
        )
        now[:, OPEN] -= now[:, FAILED_OPENS] - then[:, FAILED_OPENS]
        return now[:, :FAILED_OPENS]

    def mdt_intervals(self) -> list[tuple[int, int]]:
        """Return the intervals in which requests were answered."""
        first = np.flatnonzero(np.diff(self.seconds, prepend=-np.inf) > 1)
        last = np.flatnonzero(np.diff(self.seconds, append=np.inf) > 1)
        begins, ends = self.seconds[first], self.seconds[last] + 1
        return list(zip(begins.tolist(), ends.tolist(), strict=True))


def joined(senders: Sequence[Answered]) -> Answered:
    """Return several senders as one."""
    if len(senders) == 1:
        return senders[0]
    seconds, inverse = np.unique(
        np.concatenate([sender.seconds for sender in senders]), return_inverse=True
    )
    done = np.zeros((len(seconds), COLUMNS), dtype=np.int64)
    spent = np.zeros((len(seconds), COLUMNS))
    np.add.at(done, inverse, np.concatenate([np.diff(each.done, axis=0) for each in senders]))
    np.add.at(spent, inverse, np.concatenate([np.diff(each.spent, axis=0) for each in senders]))
    bursts = sorted((b for each in senders for b in each.bursts), key=lambda burst: burst.start)
    return replace(
        senders[0],
        bursts=tuple(bursts),
        seconds=seconds,
        done=_totals(done),
        spent=_totals(spent),
    )


def by_sender(sources: Sequence[Source], operations: Operations, begun: int) -> list[Answered]:
    """Return each source with its operations.

    Args:
        sources: the senders.
        operations: their operations.
        begun: the epoch second from which the operations' seconds count.
    """
    span = int(operations.second.max(initial=0)) + 1
    at, row = np.unique(operations.sender * span + operations.second, return_inverse=True)
    cell, size = row * COLUMNS + operations.column, len(at) * COLUMNS
    done: Ints = np.bincount(cell, minlength=size).reshape(-1, COLUMNS).astype(np.int64)
    spent: Floats = np.bincount(cell, operations.spent, size).reshape(-1, COLUMNS).astype(float)
    edges = np.searchsorted(at, np.arange(len(sources) + 1) * span).tolist()
    return [
        Answered(
            source.job_id,
            source.clients,
            source.bursts,
            source.spread,
            seconds=at[first:after] % span + begun,
            done=_totals(done[first:after]),
            spent=_totals(spent[first:after]),
        )
        for source, (first, after) in zip(sources, pairwise(edges), strict=True)
    ]


def _totals(rows: NDArray[Number]) -> NDArray[Number]:
    """Return the sums before each row and at the end."""
    totals = np.zeros((len(rows) + 1, COLUMNS), dtype=rows.dtype)
    np.cumsum(rows, axis=0, out=totals[1:])
    return totals
