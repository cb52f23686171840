"""Records of an RPC trace and their limits, shared by its fast and exact path."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
import polars as pl

from collectors.byte_scan import WORD_BYTES, Words, mixed

EARLIEST_S = 10**9  # 2001, as for counters: a clock that is not set begins in 1970
LATEST_S = 2**32 - 1  # the header's seconds are an unsigned 32-bit number
LARGEST_OPCODE = 2**15 - 1
THREAD_CHARACTERS = 16
XID_CHARACTERS = 20
NID_CHARACTERS = 64
JOB_CHARACTERS = 31  # Lustre truncates longer job ids
LONGEST_US = 86_400_000_000  # a day, the longest plausible time; sums of 10^8 fit an Int64


# The columns of `Records`.
NUMBERS = pl.Schema(
    {
        "line": pl.Int64(),
        "time_us": pl.Int64(),
        "service_us": pl.Int64(),
        "total_us": pl.Int64(),
        "group": pl.UInt64(),
        "fingerprint": pl.UInt64(),
    }
)
NAMES = pl.Schema(
    {
        "group": pl.UInt64(),
        "nid": pl.String(),
        "job": pl.String(),
        "service": pl.String(),
        "opcode": pl.Int16(),
    }
)


@dataclass(frozen=True)
class Records:
    """Handled RPCs.

    A group is the key of a window row without its time, as a 64-bit hash. About 10^5 groups are
    aggregated together, so the probability of a collision is about 10^-9.

    Attributes:
        numbers: one row per record: `line` (number), `time_us` (of the line, since the epoch),
            `service_us` (in the handler) and `total_us` (from arrival to end), both null without a
            timing tail, `group`, and `fingerprint`, equal for copies of a record.
        names: keys of the groups: `group`, `nid`, `job` ("": none), `service`, `opcode`. A group
            may have several rows.
    """

    numbers: pl.DataFrame
    names: pl.DataFrame

    @classmethod
    def concat(cls, several: Iterable[Self]) -> Self:
        """Join records; at least one item."""
        numbers, names = zip(
            *((records.numbers, records.names) for records in several), strict=True
        )
        return cls(pl.concat(numbers), pl.concat(names))


def is_timed() -> pl.Expr:
    """Return whether a record has plausible times."""
    service_us, total_us = pl.col("service_us"), pl.col("total_us")
    return (service_us >= 0) & (service_us <= total_us) & (total_us <= LONGEST_US)


def service_of(thread: pl.Expr) -> pl.Expr:
    """Return the base of a thread name: mdt_rdpg01_002 is a thread of mdt_rdpg."""
    return thread.str.strip_chars_end("0123456789_")


def group_of(nid: Words, job: Words, service: Words, opcode: Words) -> Words:
    """Hash the key of a window row, without its time."""
    return mixed([nid, job, service, opcode])


def fingerprint_of(nid: Words, xid: Words, opcode: Words, time_us: Words) -> Words:
    """Hash the identity of a record."""
    return mixed([nid, xid, opcode, time_us])


def hashed(names: pl.Series) -> Words:
    """Hash strings without NULs, with the same result as `byte_scan.mixed` of their words."""
    texts = names.cast(pl.Binary).to_list()
    words = max(map(len, texts), default=0) // WORD_BYTES + 1
    padded = np.array(texts, dtype=f"S{words * WORD_BYTES}")
    return mixed(list(padded.view(np.uint64).reshape(-1, words).T))
