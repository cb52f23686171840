"""Attribution of differences between reads of job_stats, by their job ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import connection
from psycopg import sql

from collectors.lustre.differences import SURE_LIFETIME
from collectors.tables import COUNTED, COUNTERS, TIMES
from ioportal.site.models import Target
from ioportal.telemetry.coverage import Interval
from ioportal.telemetry.models import LARGEST_BIGINT, Coverage, IoWindow, Principal
from ioportal.telemetry.sums import time_sums

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from ioportal.ingest.models import DirtyReads

CONSTANTS: dict[str, Any] = {
    **{kind.name: kind.value for kind in Principal},
    **{basis.name: basis.value for basis in IoWindow.Basis},
    "JOB_STATS": Coverage.Source.JOB_STATS.value,
    "MDT": Target.Kind.MDT.value,
    "largest": LARGEST_BIGINT,
}

KIND = """
    CASE
        WHEN w.source_job_id = 0 THEN %(UNATTRIBUTED)s
        WHEN s.batch_id = '' AND s.launch = '' THEN %(PROCESS)s
        WHEN n.contradicted THEN %(CONTRADICTED)s
        WHEN n.jobs = 0 THEN %(PENDING)s
        WHEN n.jobs = 1 THEN %(JOB)s
        ELSE %(AMBIGUOUS)s
    END
"""
JOB = "CASE WHEN n.jobs = 1 THEN n.job_id ELSE 0 END"


def each(form: str, separator: str = ", ", names: Iterable[str] = COUNTERS) -> sql.Composed:
    """Return `form` once per counter: {0} is its name, {1} the name of its previous value."""
    return sql.SQL(separator).join(
        sql.SQL(form).format(sql.Identifier(name), sql.Identifier(f"old_{name}")) for name in names
    )


def each_time(form: str) -> sql.Composed:
    """Return `form` once per time: {0} and {1} as in `each`, {2} and {3} of its operations."""
    return sql.SQL(", ").join(
        sql.SQL(form).format(
            *(sql.Identifier(part) for part in (time, f"old_{time}", name, f"old_{name}"))
        )
        for time, name in TIMES.items()
    )


# Window functions pair each snapshot with the previous one of its entry, and with its read, which
# is a row of its own. Joins are avoided: the planner has no statistics of recent rows, expects few
# rows, and would compare each with each.
_DERIVE = """
WITH reads AS (
    SELECT c.source_id AS target_id, c.start AS taken_at, c.start > %(start)s AS is_derived, (
            SELECT max(p.start) FROM telemetry_coverage p
            WHERE p.source = %(JOB_STATS)s AND p.source_id = c.source_id AND p.start < c.start
                AND p."end" = p.start
        ) AS previous_at,
        lead(c.start) OVER target AS following_at,
        lead(c.segment_id) OVER target AS following_segment_id
    FROM telemetry_coverage c
    WHERE c.source = %(JOB_STATS)s AND c.source_id = ANY(%(targets)s)
        AND c.start >= %(start)s AND c.start <= %(end)s AND c."end" = c.start
    WINDOW target AS (PARTITION BY c.source_id ORDER BY c.start)
),
timeline AS (
    SELECT target_id, taken_at, source_job_id, segment_id, snapshot_at, entry_started_at, {now},
        NULL::boolean AS is_derived, NULL::timestamptz AS previous_at,
        NULL::timestamptz AS following_at, NULL::bigint AS following_segment_id
    FROM telemetry_jobsnapshot
    WHERE target_id = ANY(%(targets)s) AND taken_at >= %(start)s AND taken_at <= %(end)s
    UNION ALL
    SELECT target_id, taken_at, NULL, NULL, NULL, NULL, {nothing}, is_derived, previous_at,
        following_at, following_segment_id
    FROM reads
),
entries AS (
    SELECT target_id, source_job_id, segment_id, taken_at, snapshot_at, entry_started_at, {now},
        bool_or(is_derived) OVER read AS is_derived,
        max(previous_at) OVER read AS previous_at,
        max(following_at) OVER read AS following_at,
        max(following_segment_id) OVER read AS following_segment_id,
        lag(taken_at) OVER entry AS old_taken_at,
        lag(snapshot_at) OVER entry AS old_snapshot_at,
        lag(entry_started_at) OVER entry AS old_entry_started_at,
        lead(taken_at) OVER entry AS next_taken_at,
        lag(ARRAY[{now}]) OVER entry AS old_counters  -- once, not by counter: that takes seconds
    FROM timeline
    WINDOW entry AS (PARTITION BY target_id, source_job_id ORDER BY taken_at),
        read AS (PARTITION BY target_id, taken_at)
),
classified AS (
    SELECT n.*,
        CASE
            WHEN previous_at IS NULL THEN %(TOTAL)s
            -- It is older than the read that lacked it: that read was incomplete.
            WHEN old_taken_at IS DISTINCT FROM previous_at
                AND entry_started_at < previous_at THEN %(TOTAL)s
            WHEN old_taken_at IS DISTINCT FROM previous_at THEN %(NEW_ENTRY)s
            WHEN entry_started_at > old_entry_started_at
                AND entry_started_at < old_snapshot_at + {lifetime} THEN %(RESET)s
            WHEN entry_started_at > old_entry_started_at THEN %(RESTARTED)s
            WHEN ({fell}) AND old_snapshot_at < taken_at - t.job_cleanup_interval
                THEN %(RESTARTED)s
            WHEN {fell} THEN %(RESET)s
            ELSE %(DIFFERENCE)s
        END AS basis
    FROM (SELECT *, {before} FROM entries) n JOIN site_target t ON t.id = target_id
    WHERE source_job_id IS NOT NULL AND is_derived
        AND (previous_at IS NULL OR previous_at >= %(start)s)
    OFFSET 0  -- computes each basis once, not at each use below
),
marked AS (
    SELECT target_id, previous_at, taken_at, source_job_id, segment_id, basis,
        basis = %(RESET)s AS is_cleared, basis = %(DIFFERENCE)s AS continues,
        entry_started_at < previous_at AS survived, {now}, {old}
    FROM classified
    UNION ALL
    -- Entries that vanished before the end of their lifetime: they were cleared, perhaps with
    -- operations since the previous read.
    SELECT target_id, taken_at, following_at, source_job_id, following_segment_id, %(RESET)s,
        true, false, false, {nothing}, {nothing}
    FROM entries JOIN site_target t ON t.id = target_id
    WHERE source_job_id IS NOT NULL AND next_taken_at IS DISTINCT FROM following_at
        AND snapshot_at + {lifetime} > following_at
),
compared AS (
    -- Whether all counters of the target were cleared. Those that exceed their earlier values, and
    -- those of entries that did not exist yet, do not show it. An entry older than the previous
    -- read does not survive it.
    SELECT *,
        bool_or(is_cleared) OVER read AND NOT coalesce(bool_or(survived) OVER read, false)
            AND count(*) FILTER (WHERE is_cleared) OVER read
                >= count(*) FILTER (WHERE continues) OVER read AS is_restart
    FROM marked
    WINDOW read AS (PARTITION BY target_id, taken_at)
),
counted AS (
    SELECT coalesce(previous_at, taken_at) AS start, taken_at AS "end", source_job_id, segment_id,
        CASE WHEN is_restart AND basis <> %(TOTAL)s THEN %(RESET)s ELSE basis END AS basis,
        {added}, {added_times}
    FROM compared
),
windows AS MATERIALIZED ({windows})
INSERT INTO telemetry_iowindow (
    start, "end", segment_id, filesystem_id, target_id, source_job_id, basis, kind, job_id, {names}
)
SELECT w.start, w."end", w.segment_id, %(filesystem)s, %(folded_target)s, w.source_job_id, w.basis,
    {kind}, {job}, {sums}, {times}
FROM windows w
CROSS JOIN LATERAL jobs_job_named(w.source_job_id, w.start, w."end") n
LEFT JOIN site_sourcejobid s ON s.id = w.source_job_id
WHERE {has_values} OR w.basis = %(RESET)s -- (cleared counters may still be 0)
"""

# The operations of the OSTs are added up. Sums take as long as the differences.
_OF_MDT = sql.SQL("SELECT * FROM counted")
_OF_OSTS = sql.SQL("""
    SELECT start, "end", source_job_id, segment_id, max(basis) AS basis, {total}, {total_times}
    FROM counted
    GROUP BY 1, 2, 3, 4
""").format(
    total=each("sum({0}) AS {0}", names=COUNTED),
    total_times=sql.SQL(", ").join(
        sql.SQL("{} AS {}").format(total, sql.Identifier(time))
        for time, total in time_sums().items()
    ),
)


def _deriving(windows: sql.Composable) -> sql.Composed:
    """Return the statement that derives windows, each the row of a job id and interval."""
    return sql.SQL(_DERIVE).format(
        windows=windows,
        kind=sql.SQL(KIND),
        job=sql.SQL(JOB),
        now=each("{0}"),
        before=sql.SQL(", ").join(
            sql.SQL("old_counters[{}] AS {}").format(place, sql.Identifier(f"old_{name}"))
            for place, name in enumerate(COUNTERS, 1)
        ),
        old=each("{1}"),
        fell=each("{0} < {1}", " OR "),
        # The current value, minus the previous one where the counter continued.
        added=each(
            "{0} - CASE WHEN basis = %(DIFFERENCE)s THEN {1} ELSE 0 END AS {0}", names=COUNTED
        ),
        # A time is null in a read before the first operation: then all of it was added.
        added_times=each_time(
            "{0} - CASE WHEN basis = %(DIFFERENCE)s AND {3} > 0 THEN {1} ELSE 0 END AS {0}"
        ),
        nothing=each("NULL::bigint"),
        lifetime=sql.SQL(f"t.job_cleanup_interval * {SURE_LIFETIME}"),
        names=each("{0}"),
        # Real counters never exceed a bigint; forged ones must not stop the stage.
        sums=each("CASE WHEN w.{0} > %(largest)s THEN %(largest)s ELSE w.{0} END", names=COUNTED),
        times=each_time("CASE WHEN w.{2} > 0 AND w.{0} <= %(largest)s THEN w.{0} END"),
        has_values=each("w.{0} > 0", " OR ", COUNTED),
    )


_DERIVE_OF_MDT, _DERIVE_OF_OSTS = map(_deriving, (_OF_MDT, _OF_OSTS))

_CLEAR = """
DELETE FROM telemetry_iowindow w
WHERE filesystem_id = %(filesystem)s AND target_id = %(folded_target)s
    AND start >= %(start)s AND "end" > %(start)s AND "end" <= %(end)s
    -- Rows that agents on other hosts of the filesystem computed stay.
    AND NOT EXISTS (SELECT FROM ingest_batch b WHERE b.segment_id = w.segment_id)
    AND NOT EXISTS (SELECT FROM ingest_segmentpart p WHERE p.id = w.segment_id)
"""

# Between the adjacent reads. If a window was derived across some of these before they arrived:
# between the adjacent reads that are attributed, which bound all such windows. Reads that are
# claimed together, with no attributed read between them, have the same bounds.
_BETWEEN_READS = """
WITH reads AS NOT MATERIALIZED (
    SELECT source_id AS target_id, start FROM telemetry_coverage c
    WHERE source = %(JOB_STATS)s AND "end" = start
),
settled AS NOT MATERIALIZED (
    SELECT target_id, start FROM reads r WHERE NOT EXISTS (
        SELECT FROM ingest_dirtyreads p
        WHERE p.target_id = r.target_id AND p.start <= r.start AND p."end" >= r.start
    )
),
bounded AS (
    SELECT d.number, d.start, d."end", d.target_id, b.start AS before, a.start AS after,
        bb.start AS settled_before, aa.start AS settled_after
    FROM unnest(%(targets)s::int[], %(starts)s::timestamptz[], %(ends)s::timestamptz[])
        WITH ORDINALITY d(target_id, start, "end", number)
    LEFT JOIN LATERAL (
        SELECT start FROM reads r WHERE r.target_id = d.target_id AND r.start < d.start
        ORDER BY start DESC LIMIT 1
    ) b ON true
    LEFT JOIN LATERAL (
        SELECT start FROM reads r WHERE r.target_id = d.target_id AND r.start > d."end"
        ORDER BY start LIMIT 1
    ) a ON true
    LEFT JOIN LATERAL (
        SELECT start FROM settled r WHERE r.target_id = d.target_id AND r.start < d.start
        ORDER BY start DESC LIMIT 1
    ) bb ON true
    LEFT JOIN LATERAL (
        SELECT start FROM settled r WHERE r.target_id = d.target_id AND r.start > d."end"
        ORDER BY start LIMIT 1
    ) aa ON true
),
numbered AS (
    -- A settled read up to the end of a claimed interval is in it: all others are after it.
    SELECT *, count(*) FILTER (WHERE settled_before > claimed_until IS NOT false)
        OVER (PARTITION BY target_id ORDER BY start, number) AS island
    FROM (
        SELECT *, max("end") OVER (
            PARTITION BY target_id ORDER BY start, number
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS claimed_until
        FROM bounded
    ) b
),
islands AS (
    SELECT *,
        CASE WHEN bool_and(settled_before IS NOT NULL) OVER island
            THEN min(settled_before) OVER island END AS attributed_before,
        CASE WHEN bool_and(settled_after IS NOT NULL) OVER island
            THEN max(settled_after) OVER island END AS attributed_after
    FROM numbered
    WINDOW island AS (PARTITION BY target_id, island)
)
SELECT
    coalesce(
        CASE WHEN is_spanned THEN coalesce(attributed_before, reads_from) ELSE before END,
        start - interval '1 microsecond'
    ),
    coalesce(
        CASE WHEN is_spanned THEN coalesce(attributed_after, reads_until) ELSE after END, "end"
    )
FROM (
    SELECT d.*, bool_or(spans) OVER (PARTITION BY d.target_id, island) AS is_spanned
    FROM islands d JOIN site_target t ON t.id = d.target_id
    CROSS JOIN LATERAL (
        SELECT EXISTS (
            SELECT FROM telemetry_iowindow w
            WHERE w.filesystem_id = t.filesystem_id
                AND w.target_id = CASE t.kind WHEN %(MDT)s THEN t.id ELSE 0 END
                AND w.start >= coalesce(d.attributed_before, '-infinity') AND w.start <= d."end"
                AND w."end" >= d.start AND (w.start < d.before OR w."end" > d.after)
        )
    ) s(spans)
) d
CROSS JOIN LATERAL (
    SELECT min(start) - interval '1 microsecond', max(start) FROM reads r
    WHERE is_spanned AND r.target_id = d.target_id
) extent(reads_from, reads_until)
ORDER BY number
"""

_NOW = (
    "(SELECT"
    + KIND
    + ","
    + JOB
    + """
    FROM jobs_job_named(w.source_job_id, w.start, w."end") n, site_sourcejobid s
    WHERE s.id = w.source_job_id)"""
)
_REATTRIBUTE = (
    "WITH changed AS (UPDATE telemetry_iowindow w SET (kind, job_id) = "
    + _NOW
    + " WHERE source_job_id = ANY(%(source_job_ids)s) AND (kind, job_id) <> "
    + _NOW
    + """ RETURNING start, "end") SELECT min(start), max("end") FROM changed"""
)


def between(dirty: Sequence[DirtyReads]) -> list[Interval]:
    """Widen intervals of reads to the reads before and after them."""
    values = {
        **CONSTANTS,
        "targets": [row.target_id for row in dirty],
        "starts": [row.start for row in dirty],
        "ends": [row.end for row in dirty],
    }
    with connection.cursor() as cursor:
        cursor.execute(_BETWEEN_READS, values)
        return [Interval(*row) for row in cursor.fetchall()]


def derive(
    filesystem_id: int, targets: list[int], folded_target: int, start: datetime, end: datetime
) -> None:
    """Derive the windows between all reads of `targets` in (start, end].

    Args:
        filesystem_id: the filesystem of the targets.
        targets: one MDT, or all OSTs of the filesystem, whose operations are added up.
        folded_target: the target id of the windows: the MDT, or 0 for OSTs.
        start: the time of a read, or a time before the first read.
        end: the time of a read.
    """
    values = {
        **CONSTANTS,
        "filesystem": filesystem_id,
        "targets": targets,
        "folded_target": folded_target,
        "start": start,
        "end": end,
    }
    with connection.cursor() as cursor:
        cursor.execute(_CLEAR, values)
        cursor.execute(_DERIVE_OF_MDT if folded_target else _DERIVE_OF_OSTS, values)


def reattribute(source_job_ids: set[int]) -> Interval | None:
    """Attribute existing windows of source job ids again after a job that they may name changed.

    Returns the interval of the changed windows; None if there are none.
    """
    if not source_job_ids:
        return None
    with connection.cursor() as cursor:
        cursor.execute(_REATTRIBUTE, {**CONSTANTS, "source_job_ids": sorted(source_job_ids)})
        start, end = cursor.fetchone()
    return Interval(start, end) if start else None
