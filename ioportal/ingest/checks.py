"""What rows of a batch must be, beyond their types; the first that is not is named."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import polars as pl

from collectors import tables
from collectors.batch.states import STATES
from ioportal.ingest.refusals import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from collectors.tables import Table
    from ioportal.ingest.manifest import Observed

EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)
AHEAD = timedelta(days=1)  # of the portal's clock
SPAN = timedelta(days=31)  # of one batch's windows: each hour is a table of its own
_WINDOW = pl.duration(seconds=10)
_TEXT_BYTES = 1 << 20
_LARGEST = 2**40  # of a window's counts and times, in µs: 12 days; sums of many stay bigints
_SIGNED = {"exit_status", "exit_signal"}


def check(table: Table, rows: pl.DataFrame, *, now: datetime) -> None:
    """Refuse rows that cannot be true.

    Raises:
        Refusal: naming column, row and reason.
    """
    broken = [*_of_columns(table, now), *_OF_TABLES.get(table.name, ())]
    found = rows.lazy().select(
        bad.fill_null(value=False).arg_true().first().alias(str(n))
        for n, (_, bad, _) in enumerate(broken)
    )
    for (column, _, reason), row in zip(broken, found.collect().row(0), strict=True):
        if row is not None:
            raise Refusal(
                f"Row {row + 1}: {column} {reason}.",
                column=column,
                row=row + 1,
                reason=reason,
                remedy="Mend what sends it; nothing of the batch was stored.",
            )
    starts = rows["start"] if "start" in table.columns else pl.Series([], dtype=tables.UTC_US)
    first, last = starts.min(), starts.max()
    if isinstance(first, datetime) and isinstance(last, datetime) and last - first > SPAN:
        raise Refusal(
            f"Its windows lie {last - first} apart.",
            column="start",
            reason=f"more than {SPAN.days} days apart",
            remedy="Send them as several batches.",
        )


def check_coverage(observed: Sequence[Observed], *, now: datetime) -> None:
    """Refuse coverage that cannot be true.

    Raises:
        Refusal: naming the interval.
    """
    for number, interval in enumerate(observed, start=1):
        if interval.start < EARLIEST or interval.end > now + AHEAD:
            reason = f"is before {EARLIEST:%Y} or lies in the future"
        elif interval.end - interval.start > SPAN:
            reason = f"is longer than {SPAN.days} days"
        else:
            continue
        raise Refusal(
            f"Interval {number} of coverage {reason}.", column="coverage", row=number, reason=reason
        )


def _of_columns(table: Table, now: datetime) -> Iterator[tuple[str, pl.Expr, str]]:
    """Yield what holds for columns of a type: which, what is wrong, and in words."""
    for name, dtype in table.columns.items():
        column = pl.col(name)
        if name not in table.nullable:
            yield name, column.is_null(), "is missing"
        if isinstance(dtype, pl.Datetime):
            yield name, column < EARLIEST, f"is before {EARLIEST:%Y}"
            yield name, column > now + AHEAD, "lies in the future"
        elif dtype == pl.String:
            yield name, column.str.len_bytes() > _TEXT_BYTES, "is longer than 1 MiB"
        elif dtype == pl.Float64:
            yield name, ~column.is_finite() | (column < 0), "is no number from 0 on"
        elif name not in _SIGNED:
            yield name, column < 0, "is negative"


_DELTAS = (
    ("end", pl.col("end") < pl.col("start"), "is before start"),
    ("basis", ~pl.col("basis").is_in(tables.BASES), f"is none of {', '.join(tables.BASES)}"),
    (
        "basis",
        (pl.col("start") == pl.col("end")) & (pl.col("basis") != "total"),
        "is total where start and end are one moment",
    ),
)
_LINES = (
    ("line", pl.col("line") < 1, "counts from 1"),
    ("line", pl.col("line").is_duplicated(), "recurs"),
)
_ENDS = ("ended_at", pl.col("ended_at") < pl.col("started_at"), "is before started_at")
_WINDOWS = (
    ("start", pl.col("start").dt.truncate("10s") != pl.col("start"), "is no multiple of 10 s"),
    ("first", pl.col("first") < pl.col("start"), "is before start"),
    ("last", pl.col("last") < pl.col("first"), "is before first"),
    ("last", pl.col("last") >= pl.col("start") + _WINDOW, "is after the window's end"),
)
_OF_TABLES: dict[str, tuple[tuple[str, pl.Expr, str], ...]] = {
    tables.RPC_WINDOWS.name: (
        *_WINDOWS,
        ("timed", pl.col("timed") > pl.col("count"), "is more than count"),
        *(
            (name, pl.col(name) > _LARGEST, f"is more than {_LARGEST:,}")
            for name, dtype in tables.RPC_WINDOWS.columns.items()
            if dtype == pl.Int64
        ),
    ),
    tables.REQUEST_WINDOWS.name: (
        *_WINDOWS,
        ("count", pl.col("count") > _LARGEST, f"is more than {_LARGEST:,}"),
    ),
    tables.JOB_DELTAS.name: _DELTAS,
    tables.TARGET_DELTAS.name: _DELTAS,
    tables.SERVICE_COUNTERS.name: (
        (
            "unit",
            ~pl.col("unit").is_in(tables.SERVICE_UNITS),
            f"is none of {', '.join(tables.SERVICE_UNITS)}",
        ),
    ),
    tables.JOBS.name: (
        *_LINES,
        ("state", ~pl.col("state").is_in(STATES), f"is none of {', '.join(STATES)}"),
        _ENDS,
    ),
    tables.LAUNCHES.name: _LINES,
    tables.WORKLOAD_JOBS.name: (*_LINES, _ENDS),
}
