"""Counted metadata operations of jobs: their share of a filesystem's, and their latest time."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db import connection
from psycopg import sql

from ioportal.telemetry.models import IoWindow
from ioportal.telemetry.sums import metadata_operations

if TYPE_CHECKING:
    from datetime import datetime

_LONGEST_POLL = timedelta(hours=1)  # longer intervals are no peak
# The intervals of which a peak consists (`ioportal.findings.job_evidence`), for all principals.
_SHARE = sql.SQL("""
SELECT (sum({operations}) FILTER (WHERE w.job_id = %(job)s))::float8 / nullif(sum({operations}), 0)
FROM telemetry_iowindow w
WHERE w.filesystem_id = %(filesystem)s AND w.target_id <> 0 AND w.basis <> %(TOTAL)s
    AND w.start >= %(earliest)s AND w.start < %(end)s AND w."end" <= %(end)s
    AND (w.start >= %(start)s OR w."end" = %(end)s)
""").format(operations=metadata_operations("w"))

# A poll interval counts in proportion to its part in the range.
_OPERATIONS = sql.SQL("""
SELECT sum({operations} * extract(epoch FROM least(w."end", %(end)s) - greatest(w.start, %(start)s))
    / extract(epoch FROM w."end" - w.start))::float8
FROM telemetry_iowindow w
WHERE w.job_id = %(job)s AND w.job_id <> 0 AND w.filesystem_id = %(filesystem)s
    AND w.target_id <> 0 AND w.basis <> %(TOTAL)s AND w."end" > w.start
    AND w.start >= %(earliest)s AND w.start < %(end)s AND w."end" > %(start)s
""").format(operations=metadata_operations("w"))

# Statistics are computed at intervals: windows that arrived later are not part of them.
_COUNTED_UNTIL = sql.SQL("""
SELECT coalesce(min(start) FILTER (WHERE total > counted), max("end"))
FROM (
    SELECT w.start, w."end", coalesce(s.metadata_operations, 0) AS counted,
        sum({operations}) OVER (PARTITION BY w.job_id ORDER BY w."end") AS total
    FROM telemetry_iowindow w JOIN jobs_jobstatistics s ON s.job_id = w.job_id
    WHERE w.job_id = ANY(%(jobs)s) AND w.job_id <> 0 AND w.target_id <> 0
) windows
""").format(operations=metadata_operations("w"))


def job_share(job: int, filesystem: int, start: datetime, end: datetime) -> float | None:
    """Return a job's part of all metadata operations in [start, end]; None: not known any more."""
    return _of_job(_SHARE, job, filesystem, (end - _LONGEST_POLL, start, end))


def rate(job: int, filesystem: int, start: datetime, end: datetime) -> float | None:
    """Return a job's metadata operations a second in [start, end); None: not known."""
    operations = _of_job(_OPERATIONS, job, filesystem, (start - _LONGEST_POLL, start, end))
    return None if operations is None else operations / (end - start).total_seconds()


def _of_job(
    query: sql.Composed, job: int, filesystem: int, times: tuple[datetime, datetime, datetime]
) -> float | None:
    values: dict[str, Any] = {
        "job": job,
        "filesystem": filesystem,
        **dict(zip(("earliest", "start", "end"), times, strict=True)),
        "TOTAL": IoWindow.Basis.TOTAL.value,
    }
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        [[result]] = cursor.fetchall()
    return result  # type: ignore[no-any-return]  # a float


def counted_until(jobs: list[int]) -> datetime | None:
    """Return up to when the statistics of some jobs count all operations; None: there are none."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNTED_UNTIL, {"jobs": jobs})
        [[end]] = cursor.fetchall()
    return end  # type: ignore[no-any-return]  # a timestamp
