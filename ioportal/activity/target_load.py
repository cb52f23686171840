"""Who loads the metadata targets: users, processes outside of jobs, and what has no name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import connection
from psycopg import sql

from ioportal.telemetry.models import IoWindow, Principal
from ioportal.telemetry.sums import metadata_operations

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime, timedelta

# A window of a job is charged to its owner, and another one to its process, or to why it has none.
# Windows that begin and end in the same bins are one; a total of unknown duration is no load.
_LOAD = sql.SQL(
    """
SELECT w.target_id,
    date_bin(%(width)s, w.start, %(start)s) AS begins,
    greatest(
        date_bin(%(width)s, w."end", %(start)s), date_bin(%(width)s, w.start, %(start)s) + %(width)s
    ) AS ends,
    w.kind,
    CASE w.kind
        WHEN %(JOB)s THEN j.owner WHEN %(PROCESS)s THEN s.text ELSE ''
    END AS who,
    sum({operations})::float8 AS operations
FROM telemetry_iowindow w
LEFT JOIN jobs_job j ON w.kind = %(JOB)s AND j.id = w.job_id
LEFT JOIN site_sourcejobid s ON w.kind = %(PROCESS)s AND s.id = w.source_job_id
WHERE w.target_id = ANY(%(targets)s) AND w.start >= %(start)s AND w.start < %(end)s
    AND w.basis <> %(TOTAL)s
GROUP BY 1, 2, 3, 4, 5
"""
).format(operations=metadata_operations("w"))


def of_targets(
    targets: Collection[int], start: datetime, end: datetime, width: timedelta
) -> list[tuple[int, datetime, datetime, int, str, float]]:
    """Return operations on metadata targets by bins of `width` and by who did them.

    Windows that begin in [start, end): target, begin, end, `Principal`, name, operations.
    """
    values: dict[str, Any] = {
        "JOB": Principal.JOB.value,
        "PROCESS": Principal.PROCESS.value,
        "TOTAL": IoWindow.Basis.TOTAL.value,
        "targets": list(targets),
        "start": start,
        "end": end,
        "width": width,
    }
    with connection.cursor() as cursor:
        cursor.execute(_LOAD, values)
        rows: list[tuple[int, datetime, datetime, int, str, float]] = cursor.fetchall()
    return rows
