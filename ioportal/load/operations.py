"""Metadata operations on targets: by principal, by kind, of hosts outside jobs, and of a job.

Exports and job_stats are two views of the same operations: their numbers are never added.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db import connection
from psycopg import sql

from collectors.tables import TIMES
from ioportal.telemetry import levels, piecewise
from ioportal.telemetry.models import IoWindow, Principal
from ioportal.telemetry.sums import metadata_operations

if TYPE_CHECKING:
    from collections.abc import Collection

    from ioportal.telemetry.piecewise import Piece

_MIDNIGHT = datetime(2000, 1, 1, tzinfo=UTC)  # bins are multiples of their width from any midnight
# A poll interval counts in proportion to its part in the range.
_IN_RANGE = sql.SQL("""
{operations} * extract(epoch FROM least(w."end", %(end)s) - greatest(w.start, %(start)s))
    / extract(epoch FROM w."end" - w.start)
""").format(operations=metadata_operations("w"))

# Windows of a job belong to its owner, others to their process or unattributed kind. Windows that
# start and end in the same bins are added up; totals of unknown duration are excluded.
_LOAD = sql.SQL(
    """
SELECT w.target_id,
    date_bin(%(width)s, since, %(midnight)s) AS begins,
    greatest(
        date_bin(%(width)s, until, %(midnight)s),
        date_bin(%(width)s, since, %(midnight)s) + %(width)s
    ) AS ends,
    w.kind,
    CASE w.kind
        WHEN %(JOB)s THEN j.owner WHEN %(PROCESS)s THEN s.text ELSE ''
    END AS principal_id,
    sum({operations})::float8 AS operations
FROM telemetry_iowindow w
CROSS JOIN LATERAL (
    SELECT greatest(w.start, %(start)s), least(w."end", %(end)s)
) inside(since, until)
LEFT JOIN jobs_job j ON w.kind = %(JOB)s AND j.id = w.job_id
LEFT JOIN site_sourcejobid s ON w.kind = %(PROCESS)s AND s.id = w.source_job_id
WHERE w.target_id = ANY(%(targets)s) AND w.start >= %(earliest)s AND w.start < %(end)s
    AND w."end" > %(start)s AND w."end" > w.start AND w.basis <> %(TOTAL)s
GROUP BY 1, 2, 3, 4, 5
"""
).format(operations=_IN_RANGE)


def target_load(
    targets: Collection[int],
    start: datetime,
    end: datetime,
    width: timedelta,
    longest: timedelta,
) -> list[tuple[int, datetime, datetime, int, str, float]]:
    """Return operations on metadata targets by bins of `width` on the clock and by user or process.

    Each row has target, start, end, `Principal`, name and operations in [start, end). Intervals of
    up to `longest` may begin before the range.
    """
    values: dict[str, Any] = {
        "JOB": Principal.JOB.value,
        "PROCESS": Principal.PROCESS.value,
        "TOTAL": IoWindow.Basis.TOTAL.value,
        "targets": list(targets),
        "earliest": start - longest,
        "start": start,
        "end": end,
        "width": width,
        "midnight": _MIDNIGHT,
    }
    with connection.cursor() as cursor:
        cursor.execute(_LOAD, values)
        rows: list[tuple[int, datetime, datetime, int, str, float]] = cursor.fetchall()
    return rows


_PIECE = sql.SQL("""
SELECT {columns} FROM {table}
WHERE {time} >= {start} AND {time} < {end} AND target_id = ANY(%(targets)s) AND basis <> %(TOTAL)s
""")
_COLUMNS = sql.SQL(", ").join(map(sql.Identifier, (*TIMES, *TIMES.values())))
_SUMS = sql.SQL(", ").join(
    sql.SQL("sum({0}), sum({1}), sum({0}) FILTER (WHERE {1} IS NOT NULL)").format(
        sql.Identifier(name), sql.Identifier(time)
    )
    for time, name in TIMES.items()
)


class OperationTime(NamedTuple):
    """The operations of one kind."""

    kind: str
    operations: int
    mean_us: float | None  # None: the server does not count times


def by_kind(targets: Collection[int], start: datetime, end: datetime) -> list[OperationTime]:
    """Return the operations in intervals that start in [start, end), most frequent first."""
    pieces = piecewise.coarsest_pieces(levels.IO_LEVELS, start, end)
    rows = sql.SQL(" UNION ALL ").join(map(_piece_query, pieces))
    values: dict[str, Any] = {"targets": list(targets), "TOTAL": IoWindow.Basis.TOTAL.value}
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("SELECT {} FROM ({}) w").format(_SUMS, rows), values)
        sums = cursor.fetchone()
    kinds = (
        OperationTime(name, int(operations), float(us / timed) if timed else None)
        for name, operations, us, timed in zip(
            TIMES.values(), sums[::3], sums[1::3], sums[2::3], strict=True
        )
        if operations
    )
    return sorted(kinds, key=lambda kind: -kind.operations)


def _piece_query(piece: Piece) -> sql.Composed:
    return _PIECE.format(
        columns=_COLUMNS,
        table=sql.Identifier(piece.level.table),
        time=sql.Identifier(piece.level.time),
        start=sql.Literal(piece.start),
        end=sql.Literal(piece.end),
    )


MAX_HOSTS = 10

_HOSTS = """
WITH windows AS MATERIALIZED (
    SELECT nid_id, kind, metadata_operations, metadata_us
    FROM telemetry_hostwindow
    WHERE target_id = ANY(%(targets)s) AND "end" > %(start)s AND "end" <= %(end)s
        AND basis <> %(TOTAL)s
),
total AS (SELECT sum(metadata_operations) AS operations FROM windows)
SELECT coalesce(n.name, i.text), sum(w.metadata_operations)::bigint,
    (sum(w.metadata_operations) / min(total.operations))::float8,
    (sum(w.metadata_us)
        / nullif(sum(w.metadata_operations) FILTER (WHERE w.metadata_us IS NOT NULL), 0))::float8
FROM windows w CROSS JOIN total
JOIN site_nid i ON i.id = w.nid_id LEFT JOIN site_node n ON n.id = i.node_id
WHERE w.kind = %(HOST)s
GROUP BY 1 HAVING sum(w.metadata_operations) > 0
ORDER BY 2 DESC, 1 LIMIT %(at_most)s
"""


class Host(NamedTuple):
    """The metadata operations of a host outside jobs."""

    name: str
    operations: int
    share: float  # of the operations of all clients
    mean_us: float | None  # None: the servers do not count times


def top_hosts(targets: Collection[int], start: datetime, end: datetime) -> list[Host]:
    """Return the busiest hosts in the poll intervals that end in (start, end]."""
    values: dict[str, Any] = {
        "targets": list(targets),
        "start": start,
        "end": end,
        "TOTAL": IoWindow.Basis.TOTAL.value,
        "HOST": Principal.HOST.value,
        "at_most": MAX_HOSTS,
    }
    with connection.cursor() as cursor:
        cursor.execute(_HOSTS, values)
        return [Host._make(row) for row in cursor.fetchall()]


_LONGEST_POLL = timedelta(hours=1)  # longer intervals are no peak
# The intervals of a peak (`ioportal.findings.evidence.job_peaks`), for all principals.
_SHARE = sql.SQL("""
SELECT (sum({operations}) FILTER (WHERE w.job_id = %(job)s))::float8 / nullif(sum({operations}), 0)
FROM telemetry_iowindow w
WHERE w.filesystem_id = %(filesystem)s AND w.target_id <> 0 AND w.basis <> %(TOTAL)s
    AND w.start >= %(earliest)s AND w.start < %(end)s AND w."end" <= %(end)s
    AND (w.start >= %(start)s OR w."end" = %(end)s)
""").format(operations=metadata_operations("w"))

_OPERATIONS = sql.SQL("""
SELECT sum({operations})::float8
FROM telemetry_iowindow w
WHERE w.job_id = %(job)s AND w.job_id <> 0 AND w.filesystem_id = %(filesystem)s
    AND w.target_id <> 0 AND w.basis <> %(TOTAL)s AND w."end" > w.start
    AND w.start >= %(earliest)s AND w.start < %(end)s AND w."end" > %(start)s
""").format(operations=_IN_RANGE)

# Statistics are computed at intervals: windows that arrived later are not included.
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


def job_rate(job: int, filesystem: int, start: datetime, end: datetime) -> float | None:
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
