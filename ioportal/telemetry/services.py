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

# A counter that was not printed before was 0. If one counter of a service decreased, or its start
# is later, all counters of the service were reset.
_DIFFERENCES = """
WITH snapshots AS MATERIALIZED (
    SELECT * FROM telemetry_servicesnapshot
    WHERE server_id = %(server)s AND taken_at = ANY(%(reads)s)
        AND taken_at BETWEEN %(first)s AND %(last)s
        AND (%(unit)s::smallint IS NULL OR unit = %(unit)s)
), reads AS (
    SELECT service_id, taken_at,
        lag(taken_at) OVER (PARTITION BY service_id ORDER BY taken_at) AS previous
    FROM (SELECT DISTINCT service_id, taken_at FROM snapshots) each
), paired AS (
    SELECT now.*, reads.previous, old.samples AS old_samples, old.sum AS old_sum, coalesce(
        bool_or(
            now.samples < old.samples OR now.sum < old.sum OR now.counted_since > old.counted_since
        ) OVER (PARTITION BY now.service_id, now.taken_at), false
    ) AS is_reset
    FROM snapshots now
    JOIN reads USING (service_id, taken_at)
    LEFT JOIN snapshots old ON old.service_id = now.service_id AND old.counter_id = now.counter_id
        AND old.taken_at = reads.previous
    WHERE reads.previous IS NOT NULL
)
SELECT service_id, counter_id, unit, previous, taken_at, is_reset,
    samples - CASE WHEN is_reset THEN 0 ELSE coalesce(old_samples, 0) END,
    sum - CASE WHEN is_reset THEN 0 ELSE coalesce(old_sum, 0) END
FROM paired
"""

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
    frame = read_frame(sql.SQL(_DIFFERENCES), DIFFERENCES, values)
    return frame.sort("end", "service_id", "counter_id")
