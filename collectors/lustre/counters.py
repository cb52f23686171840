"""Operation counters of Lustre, shared by job_stats and md_stats.

A *reading* is a parsed counter line: line (Int64), text (String), row (UInt32, its row of the
table), name (String), samples (String of digits, operations), unit (String) and sum (String of
digits, in the unit; null if the counter has none). A *moment* is a parsed line with a time: line,
text, row, name (one of `MOMENTS`) and us (Int64, microseconds of an unknown clock).

Source: docs/formats.md, "job_stats" and "md_stats".
"""

from collections.abc import Sequence

import polars as pl

from collectors.parsed import REJECT_TEXT_CHARACTERS, Account, Parsed
from collectors.tables import BYTES, COUNTED, REJECTS, TIMES, UTC_US

MOMENTS = ("snapshot_time", "start_time", "elapsed_time")

# Counters of clients and targets that are no operations, and never appear in md_stats.
CONNECTIONS = ("connect", "reconnect", "disconnect", "ping")

TOO_BIG = "number too large"
REPEATED = "duplicate line in the entry"

_REQUESTS = ("read", "write")  # in the order of BYTES
_MICROSECONDS = ("usecs", "usec")
_SECOND_US = 1_000_000
# Range of a wall clock: 2001 to 2106. An uptime clock reaches it after 31 years.
_WALL_US = (1_000_000_000 * _SECOND_US, 2**32 * _SECOND_US)
# Plausible maxima; sums over many jobs and targets still fit 64 bits.
LARGEST_SAMPLES = 2**53 - 1  # a million operations a second for 285 years
LARGEST_SUM = 2**60 - 1  # bytes, or microseconds
JOB_CHARACTERS = 255  # Lustre prints 31, and four for each escaped one
_UNKNOWN_NAME_CHARACTERS = 40


def moments(lines: pl.DataFrame, shape: str) -> pl.DataFrame:
    """Parse `lines` as moments.

    Args:
        lines: line, text, row.
        shape: a pattern that matches them, with groups name, seconds (at most 12 digits), fraction
            (nanoseconds or microseconds, padded or not) and unit ("secs.nsecs" or "secs.usecs").
    """
    fields = lines.with_columns(fields=pl.col("text").str.extract_groups(shape)).unnest("fields")
    fraction = pl.col("fraction").cast(pl.Int64).fill_null(0)
    return fields.select(
        "line",
        "text",
        "row",
        "name",
        us=pl.col("seconds").cast(pl.Int64) * _SECOND_US
        + pl.when(pl.col("unit") == "secs.usecs").then(fraction).otherwise(fraction // 1000),
    )


def sift_moments(moments: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the distinct moments, and the repeated ones of a row with the reason."""
    repeated = ~pl.struct("row", "name").is_first_distinct()
    return _by_reason(moments.with_columns(reason=pl.when(repeated).then(pl.lit(REPEATED))))


def sift_readings(readings: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the valid readings, their numbers as Int64, and the rejected ones with the reason.

    Unknown counters with value zero are irrelevant: they are in neither frame.
    """
    known = pl.col("name").is_in(COUNTED)
    samples, total = (pl.col(c).cast(pl.Int64, strict=False) for c in ("samples", "sum"))
    too_big = ~(samples <= LARGEST_SAMPLES).fill_null(value=False) | (
        pl.col("sum").is_not_null() & ~(total <= LARGEST_SUM).fill_null(value=False)
    )
    checked = readings.filter(known | (samples != 0).fill_null(value=True)).with_columns(
        samples=samples,
        sum=total,
        reason=pl.when(~known)
        .then("unknown counter " + pl.col("name").str.head(_UNKNOWN_NAME_CHARACTERS))
        .when(too_big)
        .then(pl.lit(TOO_BIG))
        .when(~pl.struct("row", "name").is_first_distinct())
        .then(pl.lit(REPEATED)),
    )
    return _by_reason(checked)


def _by_reason(checked: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    reason = pl.col("reason")
    return checked.filter(reason.is_null()), checked.filter(reason.is_not_null())


def clocks(rows: pl.DataFrame, moments: pl.DataFrame) -> pl.DataFrame:
    """Join snapshot_at and entry_started_at to `rows`, from their moments.

    A time is null if it is not on the wall clock (Lustre 2.15.0 and 2.15.1 print uptime, and
    vendors mix both). Both are null if elapsed_time is not the difference between them.
    """
    return trusted_clocks(_joined(rows, moments, "us", MOMENTS).lazy()).collect()


def trusted_clocks(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Replace the columns `MOMENTS` (Int64, microseconds) by the times of `clocks`."""
    snapshot, start, elapsed = (pl.col(name) for name in MOMENTS)
    agree = ((snapshot - start - elapsed).abs() <= _SECOND_US).fill_null(value=True)

    def trusted(moment: pl.Expr) -> pl.Expr:
        return pl.when(agree & moment.is_between(*_WALL_US)).then(moment).cast(UTC_US)

    return rows.select(
        pl.exclude(MOMENTS),
        snapshot_at=trusted(snapshot),
        entry_started_at=trusted(start),
    )


def totals(rows: pl.DataFrame, readings: pl.DataFrame) -> pl.DataFrame:
    """Join the columns `tables.COUNTERS` to `rows`; null without a line.

    The number of operations is the samples of the counter. Reads (and writes) are printed in three
    ways: `read` in bytes (up to 2.5), `read_bytes` (from 2.6), and `read_bytes` next to `read`, the
    time of the same requests (from 2.14). The number of requests is therefore the samples of
    `read_bytes` if present, else of `read`; the bytes are the sum of the counter in bytes. The time
    of operations is the sum of a counter in microseconds.
    """
    # (Counters of bytes on MDTs have the unit "reqs" from 2.11 to 2.13.)
    in_bytes = (pl.col("unit") == "bytes") | pl.col("name").is_in(BYTES)
    sums = readings.filter(pl.col("sum").is_not_null())
    samples = _joined(rows, readings, "samples", COUNTED)
    in_bytes_sums = _joined(rows.select("row"), sums.filter(in_bytes), "sum", (*BYTES, *_REQUESTS))
    timed = sums.filter(~in_bytes, pl.col("unit").is_in(_MICROSECONDS), pl.col("samples") > 0)
    times = _joined(rows.select("row"), timed, "sum", tuple(TIMES.values()))
    either = [pl.coalesce(pair) for pair in zip(BYTES, _REQUESTS, strict=True)]
    return samples.with_columns(
        *(value.alias(name) for value, name in zip(either, _REQUESTS, strict=True)),
        *in_bytes_sums.select(value.alias(name) for value, name in zip(either, BYTES, strict=True)),
        *times.select(pl.col(name).alias(time) for time, name in TIMES.items()),
    )


def assembled(
    table: pl.DataFrame, *, lines: int, accepted: int, rejected: Sequence[pl.DataFrame]
) -> Parsed:
    """Return one part; lines that are neither accepted nor rejected are irrelevant.

    Args:
        table: the rows.
        lines: number of lines.
        accepted: number of accepted lines.
        rejected: frames with line, text and reason; other columns are dropped.
    """
    columns = ("line", pl.col("text").str.head(REJECT_TEXT_CHARACTERS), "reason")
    rejects = pl.concat([REJECTS.empty(), *(frame.select(columns) for frame in rejected)])
    irrelevant = lines - accepted - rejects.height
    account = Account(lines, accepted, rejects.height, irrelevant)
    return Parsed(table, rejects.sort("line"), account)


def _joined(
    rows: pl.DataFrame, values: pl.DataFrame, column: str, names: tuple[str, ...]
) -> pl.DataFrame:
    wide = values.pivot(on="name", on_columns=names, index="row", values=column)
    return rows.join(wide, on="row", how="left", maintain_order="left")
