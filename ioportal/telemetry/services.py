"""Service statistics between reads: differences of snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from django.db import connection
from psycopg import sql

from collectors.tables import UTC_US
from ioportal.telemetry.copy import read_frame
from ioportal.telemetry.models import Coverage

if TYPE_CHECKING:
    from datetime import datetime

    from ioportal.telemetry.models import ServiceSnapshot

_MOST_DAMAGED = 2  # consecutive reads; the increase after more of them is unknown
_READS_OUTSIDE = 10  # before and after a range, to recognise damage in its first and last reads

# Counters are cumulative: fewer reads give the same sums over longer intervals.
_READS = """
SELECT start FROM (
    SELECT start, row_number() OVER (ORDER BY start) AS number, count(*) OVER () AS reads
    FROM telemetry_coverage
    WHERE source = %(source)s AND source_id = %(server)s AND start > %(start)s AND start < %(end)s
) within
WHERE number %% ceil(reads / %(at_most)s::float)::int = 0
UNION
(SELECT start FROM telemetry_coverage
WHERE source = %(source)s AND source_id = %(server)s AND start <= %(start)s
ORDER BY start DESC LIMIT %(outside)s)
UNION
(SELECT start FROM telemetry_coverage
WHERE source = %(source)s AND source_id = %(server)s AND start >= %(end)s
ORDER BY start LIMIT %(outside)s)
"""

_SNAPSHOTS = """
SELECT service_id, counter_id, unit, taken_at, counted_since, samples, sum
FROM telemetry_servicesnapshot
WHERE server_id = %(server)s AND taken_at = ANY(%(reads)s)
    AND taken_at BETWEEN %(first)s AND %(last)s
    AND (%(unit)s::smallint IS NULL OR unit = %(unit)s)
"""
_SNAPSHOT_COLUMNS = {
    "service_id": pl.Int64(),
    "counter_id": pl.Int64(),
    "unit": pl.Int64(),
    "taken_at": UTC_US,
    "counted_since": UTC_US,
    "samples": pl.Int64(),
    "sum": pl.Int64(),
}

DIFFERENCES = {
    "service_id": pl.Int64(),
    "counter_id": pl.Int64(),
    "unit": pl.Int64(),  # `ServiceSnapshot.Unit`
    "start": UTC_US,
    "end": UTC_US,
    "is_reset": pl.Boolean(),  # reset between the reads: operations before the reset are lost
    "samples": pl.Int64(),
    "sum": pl.Int64(),
}


def differences(
    server_id: int,
    start: datetime,
    end: datetime,
    at_most: int,
    unit: ServiceSnapshot.Unit | None = None,
) -> pl.DataFrame:
    """Return the increase of each counter of a server between reads: a frame of `DIFFERENCES`.

    Intervals extend to the reads before and after [start, end). At most `at_most` reads are used,
    and only counters of a `unit` if it is given.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            _READS,
            {
                "source": Coverage.Source.MDS_STATS.value,
                "server": server_id,
                "start": start,
                "end": end,
                "at_most": at_most,
                "outside": _READS_OUTSIDE,
            },
        )
        reads = [read_at for (read_at,) in cursor.fetchall()]
    if not reads:
        return pl.DataFrame(schema=DIFFERENCES)
    values = {
        "server": server_id,
        "reads": reads,
        "first": min(reads),
        "last": max(reads),
        "unit": unit,
    }
    snapshots = read_frame(sql.SQL(_SNAPSHOTS), _SNAPSHOT_COLUMNS, values)
    return _paired(snapshots).filter(pl.col("end") > start, pl.col("start") < end)


_CONTINUED = ("samples", "sum", "number", "resets")
_OF_COUNTER, _OF_READ = ["service_id", "counter_id"], ["service_id", "taken_at"]
_IS_RESET = (
    (pl.col("samples") < pl.col("old_samples"))
    | (pl.col("sum") < pl.col("old_sum"))
    | (pl.col("counted_since") > pl.col("old_counted_since"))
)


def _paired(snapshots: pl.DataFrame) -> pl.DataFrame:
    """Return the increases from each whole read of a service to the next.

    A counter that was not printed before was 0. If one counter of a service decreased, or its start
    is later, all counters of the service were reset.
    """
    increases = (
        pl.col(name) - pl.when("is_reset").then(0).otherwise(pl.col(f"old_{name}").fill_null(0))
        for name in ("samples", "sum")
    )
    return (
        _with_previous(_whole(snapshots))
        .filter(pl.col("start").is_not_null(), ~pl.col("is_unknown"))
        .with_columns(is_reset=_IS_RESET.any().over(_OF_READ))
        .with_columns(*increases)
        .rename({"taken_at": "end"})
        .select(*DIFFERENCES)
        .sort("end", "service_id", "counter_id")
    )


def _with_previous(snapshots: pl.DataFrame) -> pl.DataFrame:
    """Add the time of the service's previous read, and the values that the counter had there."""
    reads = (
        snapshots.select(_OF_READ)
        .unique()
        .sort(_OF_READ)
        .with_columns(start=pl.col("taken_at").shift().over("service_id"))
    )
    is_next = pl.all_horizontal(pl.col(name) == pl.col(name).shift() for name in _OF_COUNTER) & (
        pl.col("start") == pl.col("taken_at").shift()
    )
    old = {
        f"old_{name}": pl.when(is_next).then(pl.col(name).shift())
        for name in ("samples", "sum", "counted_since")
    }
    return snapshots.join(reads, on=_OF_READ).sort(*_OF_COUNTER, "taken_at").with_columns(**old)


def _whole(snapshots: pl.DataFrame) -> pl.DataFrame:
    """Drop the reads that lack a counter of the reads around them: a line was damaged or cut.

    Without its value, the next increase would be the total since the server started. In
    `is_unknown` are values whose counter misses more reads.
    """
    reads = snapshots.select(_OF_READ).unique().sort(_OF_READ)
    numbers = reads.with_columns(number=pl.int_range(pl.len()).over("service_id"))
    # A service without any counter is stored as one counter without samples.
    printed = _with_previous(snapshots.filter((pl.col("samples") > 0) | (pl.col("sum") > 0)))
    resets = (
        printed.group_by(_OF_READ)
        .agg(is_reset=_IS_RESET.any())
        .sort(_OF_READ)
        .with_columns(resets=pl.col("is_reset").fill_null(value=False).cum_sum().over("service_id"))
    )
    last = {f"last_{name}": pl.col(name).shift().over(_OF_COUNTER) for name in _CONTINUED}
    missed = (
        printed.join(numbers, on=_OF_READ)
        .join(resets.select(*_OF_READ, "resets"), on=_OF_READ)
        .sort(*_OF_COUNTER, "taken_at")
        .with_columns(**last)
        .filter(
            pl.col("number") > pl.col("last_number") + 1,
            pl.col("resets") == pl.col("last_resets"),
            pl.col("samples") >= pl.col("last_samples"),
            pl.col("sum") >= pl.col("last_sum"),
        )
    )
    is_short = pl.col("number") - pl.col("last_number") - 1 <= _MOST_DAMAGED
    damaged = (
        missed.filter(is_short)
        .select("service_id", number=pl.int_ranges(pl.col("last_number") + 1, "number"))
        .explode("number")
        .join(numbers, on=["service_id", "number"])
    )
    unknown = missed.filter(~is_short).select(*_OF_COUNTER, "taken_at", is_unknown=True)
    return (
        snapshots.join(damaged, on=_OF_READ, how="anti")
        .join(unknown, on=[*_OF_COUNTER, "taken_at"], how="left")
        .with_columns(pl.col("is_unknown").fill_null(value=False))
    )
