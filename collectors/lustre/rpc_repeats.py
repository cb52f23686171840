"""Recognition of trace records that were dumped twice."""

from collections import deque
from dataclasses import dataclass

import numpy as np
import polars as pl

from collectors.byte_scan import Words

SPAN_US = 60_000_000
RECORDS = 8_000_000  # maximum remembered, 8 bytes each


@dataclass(frozen=True)
class _Batch:
    """Fingerprints of records and the span of their times."""

    first_us: int
    last_us: int
    fingerprints: Words  # distinct, sorted


class RepeatedRecords:
    """Memory of recent records, to recognise records that were dumped twice.

    Concurrent dumps write the same record again shortly after, to the same file or to another file
    of the same server. Sources that share this memory must be parsed interleaved by time. Records
    are equal if NID, xid, opcode and time are. Batches are forgotten when they ended `SPAN_US`
    before a later batch began, or when there are more than `RECORDS` records.

    Records are remembered as 64-bit hashes. With `RECORDS` in memory the probability of a false
    match, which would lose one RPC, is 1 in 2 * 10^12.
    """

    def __init__(self) -> None:
        self._batches: deque[_Batch] = deque()
        self.remembered = 0
        self.dropped = 0

    def drop_from(self, records: pl.DataFrame) -> pl.DataFrame:
        """Return `records` without repeated ones, and remember them."""
        if records.is_empty():
            return records
        first_us, last_us = records.select(
            first=pl.col("time_us").min(), last=pl.col("time_us").max()
        ).row(0)
        batch = _Batch(first_us, last_us, _sorted_distinct(records["fingerprint"].to_numpy()))
        common = [
            np.intersect1d(earlier.fingerprints, batch.fingerprints, assume_unique=True)
            for earlier in self._batches
            if earlier.first_us <= batch.last_us and batch.first_us <= earlier.last_us
        ]
        self._remember(batch)
        if len(batch.fingerprints) == len(records) and not any(map(len, common)):
            return records
        in_order = records.sort("line")  # the first copy in the source counts
        fingerprints = in_order["fingerprint"]
        is_new = fingerprints.is_first_distinct()
        for repeated in common:
            is_new &= ~fingerprints.is_in(pl.Series(repeated).implode())
        new = in_order.filter(is_new)
        self.dropped += len(records) - len(new)
        return new

    def _remember(self, batch: _Batch) -> None:
        self.remembered += len(batch.fingerprints)
        while self._batches and (
            self.remembered > RECORDS or self._batches[0].last_us < batch.first_us - SPAN_US
        ):
            self.remembered -= len(self._batches.popleft().fingerprints)
        self._batches.append(batch)


def _sorted_distinct(fingerprints: Words) -> Words:
    """Return sorted distinct values; `np.unique` is 100 times slower."""
    in_order = np.sort(fingerprints)
    is_new = np.append(True, in_order[1:] != in_order[:-1])
    distinct: Words = in_order if is_new.all() else in_order[is_new]
    return distinct
