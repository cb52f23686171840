"""Attribution of clients in export statistics: hosts outside jobs, by the allocations of nodes.

The operations of nodes with jobs are attributed by job_stats. Here they are added up by job, as
evidence for its counters, and never attributed to a host.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db import connection

from ioportal.telemetry.coverage import Interval
from ioportal.telemetry.models import LARGEST_BIGINT, Principal

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

_KINDS = """
WITH active AS MATERIALIZED (
    SELECT id FROM jobs_job
    WHERE started_at IS NOT NULL
        AND tstzrange(started_at, ended_at, '[]') && tstzrange(%(start)s, %(end)s, '[]')
),
held AS MATERIALIZED (
    SELECT a.node_id, CASE WHEN count(*) = 1 THEN min(a.job_id) ELSE 0 END AS job_id
    FROM active JOIN jobs_allocation a ON a.job_id = active.id GROUP BY 1
)
SELECT i.id, CASE
    WHEN i.node_id IS NULL THEN %(UNATTRIBUTED)s
    WHEN held.node_id IS NULL THEN %(HOST)s
    ELSE %(JOB)s
END, coalesce(held.job_id, 0)
FROM site_nid i LEFT JOIN held USING (node_id)
WHERE i.id = ANY(%(nids)s)
"""

# The rows of hosts that had a job are added up, as on arrival.
_FOLD = """
WITH active AS MATERIALIZED (
    SELECT id, started_at, ended_at FROM jobs_job WHERE started_at IS NOT NULL AND {jobs}
),
moved AS (
    DELETE FROM telemetry_hostwindow w
    USING active j, jobs_allocation a, site_nid i
    WHERE a.job_id = j.id AND i.node_id = a.node_id AND w.nid_id = i.id AND w.nid_id <> 0
        AND {windows}
        AND w."end" >= %(start)s AND w."end" <= %(end)s + %(longest)s  -- (excludes chunks)
        AND w."end" >= j.started_at AND (j.ended_at IS NULL OR w.start <= j.ended_at)
    RETURNING w.*, i.node_id
),
held AS (
    SELECT moved.*, job.job_id AS holder FROM moved CROSS JOIN LATERAL (
        SELECT CASE WHEN count(*) = 1 THEN min(a.job_id) ELSE 0 END AS job_id
        FROM jobs_allocation a JOIN jobs_job j ON j.id = a.job_id
        WHERE a.node_id = moved.node_id AND j.started_at IS NOT NULL
            AND tstzrange(j.started_at, j.ended_at, '[]')
                && tstzrange(moved.start, moved."end", '[]')
    ) job
),
added AS (
    INSERT INTO telemetry_hostwindow (
        start, "end", segment_id, target_id, nid_id, job_id, kind, basis, metadata_operations,
        metadata_us
    )
    -- Real counters never exceed a bigint; forged ones must not stop the stage.
    SELECT start, "end", segment_id, target_id, 0, holder, %(JOB)s, basis,
        least(sum(metadata_operations), %(largest)s),
        CASE WHEN bool_and(metadata_us IS NOT NULL) THEN least(sum(metadata_us), %(largest)s) END
    FROM held
    GROUP BY 1, 2, 3, 4, holder, basis
    RETURNING start, "end"
)
SELECT min(start), max("end") FROM added
"""
_FOLD_JOBS = _FOLD.format(jobs="id = ANY(%(keys)s)", windows="true")
_FOLD_SEGMENTS = _FOLD.format(
    jobs="tstzrange(started_at, ended_at, '[]') && tstzrange(%(start)s, %(end)s, '[]')",
    windows="w.segment_id = ANY(%(keys)s)",
)
_LONGEST_POLL = timedelta(days=1)
_CONSTANTS: dict[str, Any] = {
    **{kind.name: kind.value for kind in (Principal.HOST, Principal.JOB, Principal.UNATTRIBUTED)},
    "largest": LARGEST_BIGINT,
}


def kinds(nid_ids: Collection[int], start: datetime, end: datetime) -> list[tuple[int, int, int]]:
    """Return each NID with its kind and job in [start, end].

    HOST: its node has no job; JOB: it has a job in a part of the interval; UNATTRIBUTED: no node.
    The job is 0 without a job, or with several.
    """
    values = {**_CONSTANTS, "nids": list(nid_ids), "start": start, "end": end}
    with connection.cursor() as cursor:
        cursor.execute(_KINDS, values)
        rows: list[tuple[int, int, int]] = cursor.fetchall()
        return rows


def fold_jobs(job_ids: Collection[int], start: datetime, end: datetime) -> Interval | None:
    """Add up the windows of hosts on which one of the jobs ran in [start, end].

    Returns the interval of the changed windows; None if there are none.
    """
    return _fold(_FOLD_JOBS, job_ids, start, end)


def fold_segments(segment_ids: Collection[int], start: datetime, end: datetime) -> None:
    """Add up the windows of some segments of hosts on which any job ran in [start, end]."""
    _fold(_FOLD_SEGMENTS, segment_ids, start, end)


def _fold(query: str, keys: Collection[int], start: datetime, end: datetime) -> Interval | None:
    values = {"keys": sorted(keys), "start": start, "end": end, "longest": _LONGEST_POLL}
    with connection.cursor() as cursor:
        cursor.execute(query, _CONSTANTS | values)
        first, last = cursor.fetchone()
    return Interval(first, last) if first else None
