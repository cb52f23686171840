"""Demand on a server by second of arrival, in slow episodes only.

A second of the trace's clock is slow if its RPCs waited longer in the queue than they were handled.
The demand is wanted from `BEFORE_S` before the arrival of the RPC that waited longest in it, when
its queue may have begun, until `AFTER_S` after the slow second.

All decisions follow the order of the records, not the parts in which they are read. The clock is
the latest time so far. Rows are summed up over `SLICE_S` of the clock, and are ready when the clock
has passed this slice and the demand of their second is wanted.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from collectors.lustre.rpc_records import Records, is_timed
from collectors.tables import RPC_SECONDS, UTC_US

BEFORE_S, AFTER_S = 60, 10
# A longer wait counts as a wait of this length. Records further behind the clock do not count.
WAIT_S = 180
SLICE_S = 10  # as long as a window of `tables.RPC_WINDOWS`
SENDERS = 200  # by name, in a second of a slice
QUEUED_US = 100_000  # minimum queue time of a slow second: a shorter queue does no harm
# Later records do not depend on records that are this much older.
SPAN_S = 2 * WAIT_S + AFTER_S + SLICE_S
# Maximum held, about 26 MB; beyond it, the oldest are dropped undecided. It suffices for `BEFORE_S`
# with 16,000 RPCs a second.
ROWS_HELD = 1_000_000
# A clock that is set back, or a dump out of order, begins a run. Seconds of different runs are
# further apart than seconds of the same run.
_RUN_S = 10**10

_SECOND_US = 1_000_000
_NEVER = np.iinfo(np.int64).max
_ROWS_AT_ONCE = 50_000  # to bound temporary arrays
_LARGEST_UINT32 = 2**32 - 1
_Numbers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Held:
    """Records of a part, or their sums, and the names of their groups."""

    rows: pl.DataFrame
    names: pl.DataFrame
    first: int  # second of arrival
    last: int  # clock
    is_summed_up: bool = False

    def summed_up(self) -> pl.DataFrame:
        """Return sums by slice, second, window and group."""
        return self.rows if self.is_summed_up else _summed_up(self.rows)


class SlowSeconds:
    """The records of a trace whose demand by second is not decided yet."""

    def __init__(self) -> None:
        self._held: list[_Held] = []
        # Seconds of the clock that may matter yet, and the first second of arrival that they want.
        self._slow: _Numbers = np.empty((2, 0), np.int64)
        self._clock = 0
        self._run = 0
        self._last_s: int | None = None  # of the latest record
        # The clock's present second, its longest wait, and its sums of service and queue times.
        self._present: _Numbers = np.zeros(4, np.int64)

    def add(self, records: Records) -> pl.DataFrame:
        """Add the next records of the trace; return rows of `tables.RPC_SECONDS` that are ready."""
        numbers = records.numbers
        if numbers.is_empty():
            return RPC_SECONDS.empty()
        if not numbers["line"].is_sorted():
            numbers = numbers.sort("line")
        for part in numbers.iter_slices(_ROWS_AT_ONCE):
            self._hold(part, records.names)
        return self._ready(self._clock)

    def rest(self) -> pl.DataFrame:
        """Return the rows that are left at the end of the trace."""
        self._add_slow(self._present[:, None])
        return self._ready(self._clock + WAIT_S + SLICE_S)

    def _hold(self, numbers: pl.DataFrame, names: pl.DataFrame) -> None:
        """Advance the clock, and hold the records."""
        times = numbers.select(
            "time_us",
            is_timed=is_timed().fill_null(value=False),
            service_us=pl.col("service_us").fill_null(0),
            total_us=pl.col("total_us").fill_null(0),
        )
        time_us, timed, service_us, total_us = (column.to_numpy() for column in times)
        ended = time_us // _SECOND_US
        clock = self._clock_of(ended)
        age = (clock - ended) % _RUN_S
        counted = timed & (age <= WAIT_S)
        if not counted.all():
            service_us, total_us = service_us * counted, total_us * counted
        waited = np.minimum(ended - (time_us - total_us) // _SECOND_US, np.minimum(ended, WAIT_S))
        self._find_slow(clock, (age + waited) * counted, service_us, total_us)
        self._clock = int(clock[-1])
        rows = pl.DataFrame(
            {
                "clock": clock,
                "age": age.astype(np.uint8),
                "waited": waited.astype(np.uint8),
                "service_us": _small(service_us),
                "total_us": _small(total_us),
                "group": numbers["group"],
            }
        )
        if not counted.all():
            rows = rows.filter(pl.Series(counted))
        if rows.height:
            first = int((clock - age - waited).min())
            self._held.append(_Held(rows, names, first, self._clock))

    def _clock_of(self, ended: _Numbers) -> _Numbers:
        """Return the clock at each record, by its own second."""
        previous = ended[0] if self._last_s is None else self._last_s
        set_back = np.diff(ended, prepend=previous) < -WAIT_S
        runs = self._run + np.cumsum(set_back)
        self._run, self._last_s = int(runs[-1]), int(ended[-1])
        clock = ended + runs * _RUN_S
        clock[0] = max(clock[0], self._clock)
        latest: _Numbers = np.maximum.accumulate(clock)
        return latest

    def _find_slow(
        self, clock: _Numbers, wait_s: _Numbers, service_us: _Numbers, total_us: _Numbers
    ) -> None:
        """Add the slow seconds that the clock leaves in the next records."""
        begins = np.append(0, np.flatnonzero(np.diff(clock)) + 1)
        second = clock[begins]
        wait_s = np.maximum.reduceat(wait_s, begins)
        service_us = np.add.reduceat(service_us, begins)
        queue_us = np.add.reduceat(total_us, begins) - service_us
        # The clock's present second may continue.
        sums = np.array([second, wait_s, service_us, queue_us])
        if second[0] == self._present[0]:
            sums[1, 0] = max(sums[1, 0], self._present[1])
            sums[2:, 0] += self._present[2:]
        else:
            self._add_slow(self._present[:, None])
        self._present = sums[:, -1]
        self._add_slow(sums[:, :-1])

    def _add_slow(self, sums: _Numbers) -> None:
        """Add the slow seconds among the clock's past seconds."""
        second, wait_s, service_us, queue_us = sums
        is_slow = (queue_us > service_us) & (queue_us >= QUEUED_US)
        if is_slow.any():
            since = second - np.minimum(BEFORE_S + wait_s, WAIT_S)
            self._slow = np.append(self._slow, np.array([second, since])[:, is_slow], axis=1)

    def _ready(self, clock: int) -> pl.DataFrame:
        """Return the rows that are ready at a clock; drop the rows of calm seconds."""
        last_wanted = self._slow[0, -1] + AFTER_S if self._slow.size else -1
        concerned = [held for held in self._held if held.first <= last_wanted]
        self._held = [
            held for held in self._held if held.first > last_wanted and held.last >= clock - WAIT_S
        ]
        ready = self._ready_of(concerned, clock) if concerned else RPC_SECONDS.empty()
        self._forget_oldest()
        self._slow = self._slow[:, self._slow[0] >= clock - SPAN_S]
        return ready

    def _forget_oldest(self) -> None:
        """Bound the undecided records; the rows that are already summed up are few."""
        height = sum(held.rows.height for held in self._held)
        for held in [held for held in self._held if not held.is_summed_up][:-1]:
            if height <= ROWS_HELD:
                return
            self._held.remove(held)
            height -= held.rows.height

    def _ready_of(self, several: list[_Held], clock: int) -> pl.DataFrame:
        """Return the ready rows of some held records; hold the remaining rows."""
        rows = pl.concat([held.summed_up() for held in several])
        names = pl.concat([held.names for held in several]).unique("group")
        second = rows["second"].to_numpy()
        is_wanted = self._is_wanted(second)
        is_final = rows["slice"].to_numpy() < clock // SLICE_S
        left = np.where(is_wanted, ~is_final, second >= clock - WAIT_S)
        if left.any():
            held = _Held(
                rows.filter(pl.Series(left)),
                names,
                first=int(second[left].min()),
                last=several[-1].last,
                is_summed_up=True,
            )
            self._held.insert(0, held)
        return _by_sender(rows.filter(pl.Series(is_wanted & is_final)), names)

    def _is_wanted(self, second: _Numbers) -> NDArray[np.bool_]:
        """Return which seconds of arrival belong to a slow second."""
        slow, since = self._slow
        earliest = np.minimum.accumulate(since[::-1])[::-1]  # of this and all later slow seconds
        following = np.searchsorted(slow, second - AFTER_S)
        wanted: NDArray[np.bool_] = np.append(earliest, _NEVER)[following] <= second
        return wanted


def _small(times_us: _Numbers) -> NDArray[np.integer]:
    """Return times in half the space, where they fit."""
    return times_us.astype(np.uint32) if times_us.max() <= _LARGEST_UINT32 else times_us


def _summed_up(rows: pl.DataFrame) -> pl.DataFrame:
    ended = pl.col("clock") - pl.col("age")
    return (
        rows.lazy()
        .group_by(
            slice=pl.col("clock") // SLICE_S,
            second=ended - pl.col("waited"),
            start=ended // SLICE_S * SLICE_S,
            group="group",
        )
        .agg(
            pl.len().cast(pl.Int64).alias("count"),
            pl.col("total_us", "service_us").cast(pl.Int64).sum(),
        )
        .collect()
    )


def _by_sender(rows: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    """Sum up rows by sender, those with few requests together."""
    if rows.is_empty():
        return RPC_SECONDS.empty()
    second = ("slice", "second")
    sender = (*second, "job", "sender")
    named = (
        rows.lazy()
        .join(names.lazy(), on="group")
        .with_columns(sender=pl.when(pl.col("job") == "").then("nid").otherwise(pl.lit("")))
    )
    heaviest = (
        named.group_by(sender)
        .agg(pl.sum("count"))
        .sort(pl.col("count").neg(), "job", "sender")
        .group_by(second, maintain_order=True)
        .head(SENDERS)
        .select(*sender, is_named=pl.lit(value=True))
    )
    by_sender = named.join(heaviest, on=sender, how="left").with_columns(
        pl.when("is_named").then(pl.col("job", "sender")).otherwise(pl.lit(""))
    )
    nids = by_sender.group_by(sender).agg(nids=pl.col("nid").n_unique())
    return (
        by_sender.group_by(*sender, "start", "service", "opcode")
        .agg(pl.sum("count"), total_us_sum=pl.sum("total_us"), service_us_sum=pl.sum("service_us"))
        .join(nids, on=sender)
        .with_columns((pl.col("second", "start") % _RUN_S * _SECOND_US).cast(UTC_US), nid="sender")
        .select(pl.col(name).cast(dtype) for name, dtype in RPC_SECONDS.columns.items())
        .collect()
    )
