"""Recognise trace records that were dumped twice."""

from collections import deque
from dataclasses import dataclass

import numpy as np
import polars as pl

from collectors.byte_scan import Words

SPAN_US = 60_000_000
RECORDS = 8_000_000  # remembered at most, with 8 bytes each


@dataclass(frozen=True)
class _Batch:
    """Fingerprints of records, and the span of their times."""

    first_us: int
    last_us: int
    fingerprints: Words  # each once, in order


class RepeatedRecords:
    """Remembers records for a while, to recognise those that were dumped twice.

    Racing dumpers write the same record again a little later: in the same file, or in another one
    of the same server; sources that share this memory must be parsed interleaved by their times.
    Records are the same when NID, xid, opcode and time are. Batches are forgotten when they ended
    `SPAN_US` before a later one began, or when they are more than `RECORDS` in all.

    What is kept of a record is a hash of 64 bits: with `RECORDS` in memory, a new record is taken
    for a repeated one by mistake once in 2 * 10^12, and that would be one RPC counted too few.
    """

    def __init__(self) -> None:
        self._batches: deque[_Batch] = deque()
        self.remembered = 0
        self.dropped = 0

    def drop_from(self, records: pl.DataFrame) -> pl.DataFrame:
        """Return `records` without those seen before, and remember them."""
        if records.is_empty():
            return records
        first_us, last_us = records.select(
            first=pl.col("time_us").min(), last=pl.col("time_us").max()
        ).row(0)
        batch = _Batch(first_us, last_us, _each_once(records["fingerprint"].to_numpy()))
        before = [
            np.intersect1d(earlier.fingerprints, batch.fingerprints, assume_unique=True)
            for earlier in self._batches
            if earlier.first_us <= batch.last_us and batch.first_us <= earlier.last_us
        ]
        self._remember(batch)
        if len(batch.fingerprints) == len(records) and not any(map(len, before)):
            return records
        in_order = records.sort("line")  # the first in the text counts
        fingerprints = in_order["fingerprint"]
        new = fingerprints.is_first_distinct()
        for known in before:
            new &= ~fingerprints.is_in(pl.Series(known).implode())
        kept = in_order.filter(new)
        self.dropped += len(records) - len(kept)
        return kept

    def _remember(self, batch: _Batch) -> None:
        self.remembered += len(batch.fingerprints)
        while self._batches and (
            self.remembered > RECORDS or self._batches[0].last_us < batch.first_us - SPAN_US
        ):
            self.remembered -= len(self._batches.popleft().fingerprints)
        self._batches.append(batch)


def _each_once(fingerprints: Words) -> Words:
    """Return them in order; `np.unique` takes a hundred times as long."""
    in_order = np.sort(fingerprints)
    is_new = np.append(True, in_order[1:] != in_order[:-1])
    each: Words = in_order if is_new.all() else in_order[is_new]
    return each
