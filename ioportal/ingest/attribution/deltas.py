"""Attribution of the differences that agents computed, by their job ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connection
from psycopg import sql

from collectors.tables import COUNTED, COUNTERS
from ioportal.ingest.attribution import reads

if TYPE_CHECKING:
    from datetime import datetime

_CLEAR = """
DELETE FROM telemetry_iowindow
WHERE segment_id = %(segment)s AND start >= %(start)s AND start <= %(end)s
"""

_DERIVE = sql.SQL(
    """
INSERT INTO telemetry_iowindow (
    start, "end", segment_id, filesystem_id, target_id, source_job_id, basis, kind, job_id, {names}
)
SELECT w.start, w."end", w.segment_id, w.filesystem_id, w.target_id, w.source_job_id, w.basis,
"""
    + reads.KIND
    + ","
    + reads.JOB
    + """, {values}
FROM telemetry_jobdelta w
CROSS JOIN LATERAL jobs_job_named(w.source_job_id, w.start, w."end") n
LEFT JOIN site_sourcejobid s ON s.id = w.source_job_id
WHERE w.segment_id = %(segment)s AND w."end" >= %(start)s AND w."end" <= %(end)s
    AND ({has_values} OR w.basis = %(RESET)s)
"""
).format(
    names=sql.SQL(", ").join(map(sql.Identifier, COUNTERS)),
    values=sql.SQL(", ").join(sql.Identifier("w", name) for name in COUNTERS),
    has_values=sql.SQL(" OR ").join(
        sql.SQL("{} > 0").format(sql.Identifier("w", name)) for name in COUNTED
    ),
)


def derive(segment_id: int, start: datetime, end: datetime) -> None:
    """Derive the windows of a batch: one for each row with an operation.

    Args:
        segment_id: the segment of the batch.
        start: earliest start of its rows.
        end: latest end of its rows.
    """
    values = {
        **reads.CONSTANTS,
        "segment": segment_id,
        "start": start,
        "end": end,
    }
    with connection.cursor() as cursor:
        cursor.execute(_CLEAR, values)
        cursor.execute(_DERIVE, values)
