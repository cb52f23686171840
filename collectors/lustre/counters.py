"""Lustre's counters of operations: what job_stats and md_stats have in common.

A *reading* is a counter's line, understood: line (Int64), text (String), row (UInt32, the row of
the table it belongs to), name (String), samples (String of digits, operations) and sum (String of
digits, bytes; null where the counter does not count bytes). A *moment* is a line that tells a
time: line, text, row, name (one of `MOMENTS`) and us (Int64, microseconds on whatever clock).

Source: docs/formats.md, "job_stats" and "md_stats".
"""

from collections.abc import Sequence

import polars as pl

from collectors.parsed import REJECT_TEXT_CHARACTERS, Account, Parsed
from collectors.tables import BYTES, COUNTERS, REJECTS, UTC_US

MOMENTS = ("snapshot_time", "start_time", "elapsed_time")

TOO_BIG = "a number is too large to be believed"
REPEATED = "repeats an earlier line of its entry"

_REQUESTS = ("read", "write")  # what BYTES are the bytes of
_SECOND_US = 1_000_000
# What a wall clock can show: 2001 to 2106. A clock that counts uptime needs 31 years to get there.
_WALL_US = (1_000_000_000 * _SECOND_US, 2**32 * _SECOND_US)
# Larger numbers are not believed; these leave room to add up what many jobs and targets count.
_SAMPLES = 2**53 - 1  # a million operations a second for 285 years
_SUM = 2**60 - 1  # bytes, or microseconds
_UNKNOWN_NAME_CHARACTERS = 40


def moments(lines: pl.DataFrame, shape: str) -> pl.DataFrame:
    """Read `lines` as moments.

    Args:
        lines: line, text, row.
        shape: a pattern that they match, with groups name, seconds (at most 12 digits), fraction
            (of so many nanoseconds or microseconds, padded or not) and unit ("secs.nsecs" or
            "secs.usecs").
    """
    found = lines.with_columns(found=pl.col("text").str.extract_groups(shape)).unnest("found")
    fraction = pl.col("fraction").cast(pl.Int64).fill_null(0)
    return found.select(
        "line",
        "text",
        "row",
        "name",
        us=pl.col("seconds").cast(pl.Int64) * _SECOND_US
        + pl.when(pl.col("unit") == "secs.usecs").then(fraction).otherwise(fraction // 1000),
    )


def sift_moments(moments: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the moments, and those that repeat one of the same row with the reason."""
    repeated = ~pl.struct("row", "name").is_first_distinct()
    judged = moments.with_columns(reason=pl.when(repeated).then(pl.lit(REPEATED)))
    return _by_reason(judged)


def sift_readings(readings: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the readings to store, their numbers as Int64, and those to reject with the reason.

    A counter that we do not know is of no interest while it is zero: it is in neither.
    """
    known = pl.col("name").is_in(COUNTERS)
    samples, total = (pl.col(c).cast(pl.Int64, strict=False) for c in ("samples", "sum"))
    too_big = ~(samples <= _SAMPLES).fill_null(value=False) | (
        pl.col("sum").is_not_null() & ~(total <= _SUM).fill_null(value=False)
    )
    judged = readings.filter(known | (samples != 0).fill_null(value=True)).with_columns(
        samples=samples,
        sum=total,
        reason=pl.when(~known)
        .then("unknown counter " + pl.col("name").str.head(_UNKNOWN_NAME_CHARACTERS))
        .when(too_big)
        .then(pl.lit(TOO_BIG))
        .when(~pl.struct("row", "name").is_first_distinct())
        .then(pl.lit(REPEATED)),
    )
    return _by_reason(judged)


def _by_reason(judged: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    reason = pl.col("reason")
    return judged.filter(reason.is_null()), judged.filter(reason.is_not_null())


def clocks(rows: pl.DataFrame, moments: pl.DataFrame) -> pl.DataFrame:
    """Join to `rows` what their moments tell, as snapshot_at and entry_started_at.

    A time is null where it is not on the wall clock (Lustre 2.15.0 and 2.15.1 print uptime, and
    vendors mix both), and both are where the elapsed time is not the difference between the two.
    """
    snapshot, start, elapsed = (pl.col(name) for name in MOMENTS)
    agree = ((snapshot - start - elapsed).abs() <= _SECOND_US).fill_null(value=True)

    def trusted(moment: pl.Expr) -> pl.Expr:
        return pl.when(agree & moment.is_between(*_WALL_US)).then(moment).cast(UTC_US)

    return _joined(rows, moments, "us", MOMENTS).select(
        pl.exclude(MOMENTS),
        snapshot_at=trusted(snapshot),
        entry_started_at=trusted(start),
    )


def totals(rows: pl.DataFrame, readings: pl.DataFrame) -> pl.DataFrame:
    """Join to `rows` the columns `tables.COUNTERS`, null where no line told.

    Operations are the samples of the counter. Reads and writes were named in three ways, one thing
    each time: `read` in bytes (up to 2.5), `read_bytes` (from 2.6), and `read_bytes` beside a
    `read` that is the latency of the same requests (from 2.14). So the number of requests is the
    samples of `read_bytes` where it was printed, of `read` otherwise, and the bytes are the sum of
    whichever counts bytes.
    """
    in_bytes = readings.filter(pl.col("sum").is_not_null())
    samples = _joined(rows, readings, "samples", COUNTERS)
    sums = _joined(rows.select("row"), in_bytes, "sum", (*BYTES, *_REQUESTS))
    either = [pl.coalesce(pair) for pair in zip(BYTES, _REQUESTS, strict=True)]
    return samples.with_columns(
        *(value.alias(name) for value, name in zip(either, _REQUESTS, strict=True)),
        *sums.select(value.alias(name) for value, name in zip(either, BYTES, strict=True)),
    )


def assembled(
    table: pl.DataFrame, *, lines: int, accepted: int, rejected: Sequence[pl.DataFrame]
) -> Parsed:
    """Return one part: of its `lines`, those neither accepted nor rejected were irrelevant.

    Args:
        table: the rows.
        lines: how many lines the part has.
        accepted: how many of them were understood.
        rejected: frames with line, text and reason; any other columns are dropped.
    """
    columns = ("line", pl.col("text").str.head(REJECT_TEXT_CHARACTERS), "reason")
    rejects = pl.concat([REJECTS.empty(), *(frame.select(columns) for frame in rejected)])
    irrelevant = lines - accepted - rejects.height
    account = Account(lines, accepted, rejects.height, irrelevant)
    return Parsed(table, rejects.sort("line"), account)


def _joined(
    rows: pl.DataFrame, told: pl.DataFrame, value: str, names: tuple[str, ...]
) -> pl.DataFrame:
    wide = told.pivot(on="name", on_columns=names, index="row", values=value)
    return rows.join(wide, on="row", how="left", maintain_order="left")
