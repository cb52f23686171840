"""What the services of a server counted between reads: differences of snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from django.db import connection

from collectors.tables import UTC_US
from ioportal.telemetry.models import Coverage

if TYPE_CHECKING:
    from datetime import datetime

# Counters are cumulative: of many reads a few say as much over longer intervals.
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

# A counter that its service did not print before was never hit before. Where one of a service fell,
# or it says that it began later, all of them began anew.
_DIFFERENCES = """
WITH shown AS MATERIALIZED (
    SELECT * FROM telemetry_servicesnapshot
    WHERE server_id = %(server)s AND taken_at = ANY(%(reads)s)
        AND taken_at BETWEEN %(first)s AND %(last)s
), reads AS (
    SELECT service_id, taken_at,
        lag(taken_at) OVER (PARTITION BY service_id ORDER BY taken_at) AS previous
    FROM (SELECT DISTINCT service_id, taken_at FROM shown) each
), paired AS (
    SELECT now.*, reads.previous, old.samples AS old_samples, old.sum AS old_sum, coalesce(
        bool_or(
            now.samples < old.samples OR now.sum < old.sum OR now.counted_since > old.counted_since
        ) OVER (PARTITION BY now.service_id, now.taken_at), false
    ) AS anew
    FROM shown now
    JOIN reads USING (service_id, taken_at)
    LEFT JOIN shown old ON old.service_id = now.service_id AND old.counter_id = now.counter_id
        AND old.taken_at = reads.previous
    WHERE reads.previous IS NOT NULL
)
SELECT service_id, counter_id, unit, previous, taken_at, anew,
    samples - CASE WHEN anew THEN 0 ELSE coalesce(old_samples, 0) END,
    sum - CASE WHEN anew THEN 0 ELSE coalesce(old_sum, 0) END
FROM paired
ORDER BY taken_at, service_id, counter_id
"""

DIFFERENCES = {
    "service_id": pl.Int64(),
    "counter_id": pl.Int64(),
    "unit": pl.Int64(),  # `ServiceSnapshot.Unit`
    "start": UTC_US,
    "end": UTC_US,
    "anew": pl.Boolean(),  # it began anew in between: what it counted before that is lost
    "samples": pl.Int64(),
    "sum": pl.Int64(),
}


def differences(server_id: int, start: datetime, end: datetime, at_most: int) -> pl.DataFrame:
    """Return what each counter of a server gained from read to read: a frame of `DIFFERENCES`.

    Intervals reach to the reads before and after [start, end). Where there are more reads than
    `at_most`, some are left out.
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
        reads = [moment for (moment,) in cursor.fetchall()]
        if not reads:
            return pl.DataFrame(schema=DIFFERENCES)
        values = {"server": server_id, "reads": reads, "first": min(reads), "last": max(reads)}
        cursor.execute(_DIFFERENCES, values)
        return pl.DataFrame(cursor.fetchall(), schema=DIFFERENCES, orient="row")
