"""Validity of a batch's rows beyond their types; a refusal names the first invalid row."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import polars as pl

from collectors import tables
from collectors.batch.states import STATES
from collectors.lustre.rpc_seconds import WAIT_S
from ioportal.ingest.manifest import Ahead, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from collectors.parsed import Parsed
    from collectors.tables import Table
    from ioportal.ingest.manifest import Observed

EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)
MAX_CLOCK_LEAD = timedelta(minutes=5)  # a sender with a clock further ahead waits
_IMPOSSIBLE_LEAD = timedelta(days=1)  # no clock is so wrong: the value is
MAX_SPAN = timedelta(days=31)  # of one batch's windows: each hour has its own chunk
_WINDOW = pl.duration(seconds=10)
_LONGEST_WAIT = pl.duration(seconds=WAIT_S)
_TEXT_BYTES = 1 << 20
_LARGEST = 2**40  # of a window's counts and times in µs (12 days), so that sums remain bigints
_MOST_NODES = 1_000_000  # of a job
_LARGEST_COUNTER = 2**53 - 1  # as in the collectors: the counters of a row add up to a bigint
_SIGNED = {"exit_status", "exit_signal"}
_FUTURE = "is in the future"


def check(table: Table, rows: pl.DataFrame, *, now: datetime) -> None:
    """Refuse impossible rows.

    Raises:
        Refusal: the message names column, row and reason.
        Ahead: the sender's clock is ahead.
    """
    rules = [*_column_rules(table, now), *_TABLE_RULES.get(table.name, ())]
    invalid_rows = rows.lazy().select(
        invalid.fill_null(value=False).arg_true().first().alias(str(n))
        for n, (_, invalid, _) in enumerate(rules)
    )
    for (column, _, reason), row in zip(rules, invalid_rows.collect().row(0), strict=True):
        if row is not None:
            raise Refusal(
                f"Row {row + 1}: {column} {reason}.",
                column=column,
                row=row + 1,
                reason=reason,
                remedy="Fix the sender. Nothing of the batch was stored.",
            )
    starts = rows["start"] if "start" in table.columns else pl.Series([], dtype=tables.UTC_US)
    first, last = starts.min(), starts.max()
    if isinstance(first, datetime) and isinstance(last, datetime) and last - first > MAX_SPAN:
        raise Refusal(
            f"The windows span {last - first}.",
            column="start",
            reason=f"a batch spans at most {MAX_SPAN.days} days",
            remedy="Send them as several batches.",
        )

    for name, dtype in table.columns.items():
        if isinstance(dtype, pl.Datetime):
            _expect_past(name, rows[name].max(), now)


def without_future(parsed: Parsed, identifier: str, *, now: datetime) -> Parsed:
    """Reject records of a file or request with a time ahead of the portal's clock.

    Such a record would be the latest for ever.

    Args:
        parsed: a part whose rows are records.
        identifier: name of the column that identifies a record.
        now: the present time.
    """
    times = [name for name, dtype in parsed.table.schema.items() if isinstance(dtype, pl.Datetime)]
    latest = pl.max_horizontal(times) > now + MAX_CLOCK_LEAD
    future = parsed.table.filter(latest)
    if future.is_empty():
        return parsed
    rejects = future.select(
        pl.col("line").cast(tables.REJECTS.columns["line"]),
        pl.col(identifier).cast(pl.String).alias("text"),
        pl.lit(f"a time {_FUTURE}: check the clock of its source").alias("reason"),
    )
    account = parsed.account
    return replace(
        parsed,
        table=parsed.table.filter(~latest.fill_null(value=False)),
        rejects=pl.concat([parsed.rejects, rejects.select(parsed.rejects.columns)]),
        account=replace(
            account,
            accepted=account.accepted - future.height,
            rejected=account.rejected + future.height,
        ),
    )


def check_coverage(observed: Sequence[Observed], *, now: datetime) -> None:
    """Refuse impossible coverage.

    Raises:
        Refusal: the message names the interval.
        Ahead: the sender's clock is ahead.
    """
    for number, interval in enumerate(observed, start=1):
        if interval.start < EARLIEST or interval.end > now + _IMPOSSIBLE_LEAD:
            reason = f"is before {EARLIEST:%Y} or in the future"
        elif interval.end - interval.start > MAX_SPAN:
            reason = f"is longer than {MAX_SPAN.days} days"
        else:
            continue
        raise Refusal(
            f"Interval {number} of coverage {reason}.", column="coverage", row=number, reason=reason
        )
    _expect_past("coverage", max((interval.end for interval in observed), default=None), now)


def _expect_past(column: str, latest: object, now: datetime) -> None:
    """Let a sender wait whose clock is ahead."""
    if isinstance(latest, datetime) and latest > now + MAX_CLOCK_LEAD:
        raise Ahead(
            f"The latest time of {column}, {latest.isoformat()}, {_FUTURE}.",
            wait_s=(latest - now - MAX_CLOCK_LEAD).total_seconds(),
            column=column,
            reason=_FUTURE,
            remedy="Correct the sender's clock. It may send the batch again once the time is past.",
        )


def _column_rules(table: Table, now: datetime) -> Iterator[tuple[str, pl.Expr, str]]:
    """Yield the rules for columns by type: column, expression of invalid rows, and reason."""
    for name, dtype in table.columns.items():
        column = pl.col(name)
        if name not in table.nullable:
            yield name, column.is_null(), "is missing"
        if isinstance(dtype, pl.Datetime):
            yield name, column < EARLIEST, f"is before {EARLIEST:%Y}"
            yield name, column > now + _IMPOSSIBLE_LEAD, _FUTURE
        elif dtype == pl.String:
            yield name, column.str.len_bytes() > _TEXT_BYTES, "is longer than 1 MiB"
        elif dtype == pl.Float64:
            yield name, ~column.is_finite() | (column < 0), "is not a number of at least 0"
        elif name not in _SIGNED:
            yield name, column < 0, "is negative"


def _bounded(table: Table, largest: int) -> Iterator[tuple[str, pl.Expr, str]]:
    """Yield the rules for the counts of a table, so that sums of a row and of rows are bigints."""
    for name, dtype in table.columns.items():
        if dtype == pl.Int64:
            yield name, pl.col(name) > largest, f"is more than {largest:,}"


_DELTAS = (
    ("end", pl.col("end") < pl.col("start"), "is before start"),
    ("basis", ~pl.col("basis").is_in(tables.BASES), f"is not one of {', '.join(tables.BASES)}"),
    (
        "basis",
        (pl.col("start") == pl.col("end")) & (pl.col("basis") != "total"),
        "must be total if start equals end",
    ),
)
_LINES = (
    ("line", pl.col("line") < 1, "is less than 1"),
    ("line", pl.col("line").is_duplicated(), "is not unique"),
)
_ENDS = ("ended_at", pl.col("ended_at") < pl.col("started_at"), "is before started_at")
_START = (
    "start",
    pl.col("start").dt.truncate("10s") != pl.col("start"),
    "is not a multiple of 10 s",
)
_WINDOWS = (
    _START,
    ("first", pl.col("first") < pl.col("start"), "is before start"),
    ("last", pl.col("last") < pl.col("first"), "is before first"),
    ("last", pl.col("last") >= pl.col("start") + _WINDOW, "is after the window's end"),
)
_TABLE_RULES: dict[str, tuple[tuple[str, pl.Expr, str], ...]] = {
    tables.RPC_WINDOWS.name: (
        *_WINDOWS,
        ("timed", pl.col("timed") > pl.col("count"), "is more than count"),
        *_bounded(tables.RPC_WINDOWS, _LARGEST),
    ),
    tables.RPC_SECONDS.name: (
        _START,
        (
            "second",
            pl.col("second").dt.truncate("1s") != pl.col("second"),
            "is not a whole second",
        ),
        ("second", pl.col("second") >= pl.col("start") + _WINDOW, "is after the window's end"),
        (
            "second",
            pl.col("second") < pl.col("start") - _LONGEST_WAIT,
            f"is over {WAIT_S} s before start",
        ),
        ("nid", (pl.col("nid") != "") & (pl.col("job") != ""), "must be empty if there is a job"),
        *_bounded(tables.RPC_SECONDS, _LARGEST),
    ),
    tables.REQUEST_WINDOWS.name: (
        *_WINDOWS,
        *_bounded(tables.REQUEST_WINDOWS, _LARGEST),
    ),
    **{
        table.name: (*_DELTAS, *_bounded(table, _LARGEST_COUNTER))
        for table in (tables.JOB_DELTAS, tables.TARGET_DELTAS)
    },
    tables.EXPORT_DELTAS.name: _DELTAS,
    tables.SERVICE_COUNTERS.name: (
        (
            "unit",
            ~pl.col("unit").is_in(tables.SERVICE_UNITS),
            f"is not one of {', '.join(tables.SERVICE_UNITS)}",
        ),
    ),
    tables.JOBS.name: (
        *_LINES,
        ("state", ~pl.col("state").is_in(STATES), f"is not one of {', '.join(STATES)}"),
        _ENDS,
        ("node_count", pl.col("node_count") > _MOST_NODES, f"is more than {_MOST_NODES:,}"),
    ),
    tables.LAUNCHES.name: _LINES,
    tables.WORKLOAD_JOBS.name: (
        *_LINES,
        _ENDS,
        ("panda_id", pl.col("panda_id") < 1, "is less than 1"),
    ),
}
