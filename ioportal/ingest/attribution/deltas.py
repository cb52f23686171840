"""Attribution of the differences that agents computed, by their job ids.

The first poll of a target reports totals. Where reads from files precede it, their operations have
been counted: the last of these reads is subtracted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connection
from psycopg import sql

from collectors.tables import COUNTED
from ioportal.ingest.attribution import reads
from ioportal.telemetry.sums import expressions, time_sums

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from ioportal.ingest.models import DirtyReads


_CLEAR = """
DELETE FROM telemetry_iowindow
WHERE segment_id = %(segment)s AND start >= %(start)s AND start <= %(end)s
"""

_OF_BATCH = 'w.segment_id = %(segment)s AND w."end" >= %(start)s AND w."end" <= %(end)s'
_OF_FIRST_POLL = 'w.basis = %(TOTAL)s AND w.start = w."end"'
_ROW_TARGET = "CASE t.kind WHEN %(MDT)s THEN t.id ELSE 0 END"
# Coverage before a first poll; its own stream's coverage starts at the poll.
_EARLIER = '(c.start < p.polled_at OR (c.start = p.polled_at AND c."end" = c.start))'

# A join of first polls and snapshots is avoided, as in `reads`: a window function pairs them.
_DERIVE = sql.SQL(
    """
WITH first_polls AS MATERIALIZED (
    SELECT DISTINCT w.target_id, w."end" AS polled_at FROM telemetry_jobdelta w
    WHERE {of_batch} AND {of_first_poll}
),
last_reads AS MATERIALIZED (
    SELECT p.target_id AS row_target_id, p.polled_at, t.id AS target_id, r.start AS taken_at
    FROM first_polls p
    JOIN ingest_segment_targets b ON b.segment_id = %(segment)s
    JOIN site_target t ON t.id = b.target_id AND {row_target} = p.target_id
    CROSS JOIN LATERAL (
        SELECT c.start, c."end" FROM telemetry_coverage c
        WHERE c.source = %(JOB_STATS)s AND c.source_id = t.id AND {earlier}
        ORDER BY c.start DESC LIMIT 1
    ) r
    WHERE r."end" = r.start -- (a read from a file)
),
totals AS (
    SELECT false AS is_read, w."end" AS polled_at, w.filesystem_id, w.target_id, w.source_job_id,
        {names}
    FROM telemetry_jobdelta w
    WHERE {of_batch} AND {of_first_poll}
    UNION ALL
    SELECT true, r.polled_at, NULL, r.row_target_id, s.source_job_id, {read_totals}
    FROM last_reads r
    JOIN telemetry_jobsnapshot s ON s.target_id = r.target_id AND s.taken_at = r.taken_at
    WHERE s.taken_at >= (SELECT min(taken_at) FROM last_reads)
    GROUP BY 2, 4, 5
),
compared AS (
    SELECT *, bool_or(is_read) OVER entry AS was_read, {before}
    FROM totals
    WINDOW entry AS (PARTITION BY polled_at, target_id, source_job_id)
),
classified AS (
    SELECT *, was_read AND NOT coalesce({fell}, false) AS continued
    FROM compared WHERE NOT is_read
    OFFSET 0  -- computes each comparison once, not at each use below
),
gained AS (
    SELECT polled_at, filesystem_id, target_id, source_job_id, {added}, {added_times}
    FROM classified
),
windows AS (
    SELECT w.start, w."end", w.filesystem_id, w.target_id, w.source_job_id, w.basis, {names}
    FROM telemetry_jobdelta w
    WHERE {of_batch} AND NOT ({of_first_poll})
    UNION ALL
    SELECT polled_at, polled_at, filesystem_id, target_id, source_job_id, %(TOTAL)s, {counts},
        {times}
    FROM gained w
)
INSERT INTO telemetry_iowindow (
    start, "end", segment_id, filesystem_id, target_id, source_job_id, basis, kind, job_id, {names}
)
SELECT w.start, w."end", %(segment)s, w.filesystem_id, w.target_id, w.source_job_id, w.basis,
"""
    + reads.KIND
    + ","
    + reads.JOB
    + """, {names}
FROM windows w
CROSS JOIN LATERAL jobs_job_named(w.source_job_id, w.start, w."end") n
LEFT JOIN site_sourcejobid s ON s.id = w.source_job_id
WHERE {has_values} OR w.basis = %(RESET)s
"""
).format(
    of_batch=sql.SQL(_OF_BATCH),
    of_first_poll=sql.SQL(_OF_FIRST_POLL),
    row_target=sql.SQL(_ROW_TARGET),
    earlier=sql.SQL(_EARLIER),
    names=reads.each("{0}"),
    # A forged sum exceeds every counter, so it is not subtracted.
    read_totals=sql.SQL(", ").join(
        [*expressions("sum({})", COUNTED).values(), *time_sums().values()]
    ),
    before=reads.each("max({0}) FILTER (WHERE is_read) OVER entry AS {1}"),
    fell=reads.each("{0} < {1}", " OR "),
    added=reads.each(
        "({0} - CASE WHEN continued THEN {1} ELSE 0 END)::bigint AS {0}", names=COUNTED
    ),
    # A time is null in a read before the first operation: then all of it was added.
    added_times=reads.each_time(
        "({0} - CASE WHEN continued AND {3} > 0 THEN {1} ELSE 0 END)::bigint AS {0}"
    ),
    counts=reads.each("w.{0}", names=COUNTED),
    times=reads.each_time("CASE WHEN w.{2} > 0 THEN w.{0} END"),
    has_values=reads.each("w.{0} > 0", " OR ", COUNTED),
)

_REQUEST_FIRST_POLLS = sql.SQL(
    """
WITH changed AS (
    SELECT t.id AS target_id, t.filesystem_id, {row_target} AS row_target_id, c.changed_at
    FROM unnest(%(targets)s::int[], %(ends)s::timestamptz[]) AS c(target_id, changed_at)
    JOIN site_target t ON t.id = c.target_id
),
polls AS (
    SELECT DISTINCT w.segment_id, w.filesystem_id, w.target_id AS row_target_id,
        w."end" AS polled_at
    FROM telemetry_jobdelta w
    WHERE w.target_id IN (SELECT row_target_id FROM changed)
        AND w."end" >= (SELECT min(changed_at) FROM changed) AND {of_first_poll}
)
INSERT INTO ingest_dirtydeltas (segment_id, filesystem_id, start, "end", has_rows)
SELECT DISTINCT g.id, p.filesystem_id, g.start, g."end", true
FROM polls p
JOIN changed r USING (filesystem_id, row_target_id)
JOIN ingest_segment_targets b ON b.segment_id = p.segment_id AND b.target_id = r.target_id
JOIN ingest_segment g ON g.id = p.segment_id
WHERE p.polled_at >= r.changed_at AND NOT EXISTS (
    SELECT FROM telemetry_coverage c
    WHERE c.source = %(JOB_STATS)s AND c.source_id = r.target_id AND c.start > r.changed_at
        AND {earlier}
)
"""
).format(
    row_target=sql.SQL(_ROW_TARGET),
    of_first_poll=sql.SQL(_OF_FIRST_POLL),
    earlier=sql.SQL(_EARLIER),
)


def derive(segment_id: int, start: datetime, end: datetime) -> None:
    """Derive the windows of a batch: one for each row with an operation that no file counted.

    Args:
        segment_id: the segment of the batch.
        start: earliest start of its rows.
        end: latest end of its rows.
    """
    values = {**reads.CONSTANTS, "segment": segment_id, "start": start, "end": end}
    with connection.cursor() as cursor:
        cursor.execute(_CLEAR, values)
        cursor.execute(_DERIVE, values)


def request_first_polls(changed: Collection[DirtyReads]) -> None:
    """Request the attribution of the first polls from which changed reads are subtracted."""
    if not changed:
        return
    values = {
        **reads.CONSTANTS,
        "targets": [row.target_id for row in changed],
        "ends": [row.end for row in changed],
    }
    with connection.cursor() as cursor:
        cursor.execute(_REQUEST_FIRST_POLLS, values)
