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
ORDER BY start DESC LIMIT 1)
UNION
(SELECT start FROM telemetry_coverage
WHERE source = %(source)s AND source_id = %(server)s AND start >= %(end)s
ORDER BY start LIMIT 1)
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
    return _paired(read_frame(sql.SQL(_SNAPSHOTS), _SNAPSHOT_COLUMNS, values))


def _paired(snapshots: pl.DataFrame) -> pl.DataFrame:
    """Return the increases from each read of a service to the next.

    A counter that was not printed before was 0. If one counter of a service decreased, or its start
    is later, all counters of the service were reset.
    """
    of_counter, of_read = ["service_id", "counter_id"], ["service_id", "taken_at"]
    reads = (
        snapshots.select(of_read)
        .unique()
        .sort(of_read)
        .with_columns(start=pl.col("taken_at").shift().over("service_id"))
    )
    is_next = pl.all_horizontal(pl.col(name) == pl.col(name).shift() for name in of_counter) & (
        pl.col("start") == pl.col("taken_at").shift()
    )
    old = {
        f"old_{name}": pl.when(is_next).then(pl.col(name).shift())
        for name in ("samples", "sum", "counted_since")
    }
    is_reset = (
        (pl.col("samples") < pl.col("old_samples"))
        | (pl.col("sum") < pl.col("old_sum"))
        | (pl.col("counted_since") > pl.col("old_counted_since"))
    )
    increases = (
        pl.col(name) - pl.when("is_reset").then(0).otherwise(pl.col(f"old_{name}").fill_null(0))
        for name in ("samples", "sum")
    )
    return (
        snapshots.join(reads, on=of_read)
        .sort(*of_counter, "taken_at")
        .with_columns(**old)
        .filter(pl.col("start").is_not_null())
        .with_columns(is_reset=is_reset.any().over(of_read))
        .with_columns(*increases)
        .rename({"taken_at": "end"})
        .select(*DIFFERENCES)
        .sort("end", "service_id", "counter_id")
    )
