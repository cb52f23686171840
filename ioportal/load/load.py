"""Load of metadata targets by user, by process outside jobs, and unattributed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django.db import connection
from psycopg import sql

from ioportal.telemetry.models import IoWindow, Principal
from ioportal.telemetry.sums import metadata_operations

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import timedelta

_MIDNIGHT = datetime(2000, 1, 1, tzinfo=UTC)  # bins are multiples of their width from any midnight
# Windows of a job belong to its owner, others to their process or unattributed kind. Windows that
# start and end in the same bins are added up; totals of unknown duration are excluded.
_LOAD = sql.SQL(
    """
SELECT w.target_id,
    date_bin(%(width)s, w.start, %(midnight)s) AS begins,
    greatest(
        date_bin(%(width)s, w."end", %(midnight)s),
        date_bin(%(width)s, w.start, %(midnight)s) + %(width)s
    ) AS ends,
    w.kind,
    CASE w.kind
        WHEN %(JOB)s THEN j.owner WHEN %(PROCESS)s THEN s.text ELSE ''
    END AS principal_id,
    sum({operations})::float8 AS operations
FROM telemetry_iowindow w
LEFT JOIN jobs_job j ON w.kind = %(JOB)s AND j.id = w.job_id
LEFT JOIN site_sourcejobid s ON w.kind = %(PROCESS)s AND s.id = w.source_job_id
WHERE w.target_id = ANY(%(targets)s) AND w.start >= %(start)s AND w.start < %(end)s
    AND w.basis <> %(TOTAL)s
GROUP BY 1, 2, 3, 4, 5
"""
).format(operations=metadata_operations("w"))


def target_load(
    targets: Collection[int], start: datetime, end: datetime, width: timedelta
) -> list[tuple[int, datetime, datetime, int, str, float]]:
    """Return operations on metadata targets by bins of `width` on the clock and by user or process.

    Each row has target, start, end, `Principal`, name and operations of windows in [start, end).
    """
    values: dict[str, Any] = {
        "JOB": Principal.JOB.value,
        "PROCESS": Principal.PROCESS.value,
        "TOTAL": IoWindow.Basis.TOTAL.value,
        "targets": list(targets),
        "start": start,
        "end": end,
        "width": width,
        "midnight": _MIDNIGHT,
    }
    with connection.cursor() as cursor:
        cursor.execute(_LOAD, values)
        rows: list[tuple[int, datetime, datetime, int, str, float]] = cursor.fetchall()
    return rows
