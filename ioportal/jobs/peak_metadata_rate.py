"""The peak metadata rate: the highest total rate of a job's MDTs between two reads.

A read that shows old counters moves operations to the next interval, whose rate is then too high. A
trace of the same interval shows this: servers perform at most one operation per RPC.

Definition: docs/metrics.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psycopg import sql

from ioportal.jobs.statistics_queries import MAX_GAP
from ioportal.telemetry.sums import metadata_operations

if TYPE_CHECKING:
    from ioportal.jobs.models import JobStatistics

_CHECKED = 20  # highest intervals of each job that are compared with traces

# MDTs are read at different times, so rates of overlapping windows are added. A running sum finds
# the time of the peak; its rate is then summed separately, to avoid accumulated rounding errors.
PEAKS = sql.SQL(
    """
WITH counted AS MATERIALIZED (
    SELECT *, row_number() OVER (PARTITION BY job_id ORDER BY operations / width DESC) AS place
    FROM (
        SELECT job_id, start, "end", extract(epoch FROM "end" - start)::float8 AS width,
            min(w.filesystem_id) AS filesystem_id, sum({metadata})::float8 AS operations
        FROM telemetry_iowindow w LEFT JOIN site_target t ON t.id = w.target_id
        WHERE job_id = ANY(%(jobs)s) AND job_id <> 0 AND target_id <> 0 AND basis <> %(TOTAL)s
            AND "end" > start AND "end" - start <= {gap}
        GROUP BY job_id, start, "end"
    ) intervals
),
windows AS MATERIALIZED (
    SELECT job_id, start, "end", width, least(operations, rpcs) / width AS rate,
        coalesce(rpcs < operations, false) AS is_capped
    FROM counted w LEFT JOIN LATERAL (
        -- Of all clients, because the RPCs of a job may be attributed to others. Windows of 10 s
        -- that overlap the interval partly count in proportion.
        SELECT sum(count * extract(epoch FROM
            least(r.start + interval '10 seconds', w."end") - greatest(r.start, w.start)
        ) / 10) FILTER (WHERE opcode <> %(LDLM_CANCEL)s)::float8 AS rpcs
        FROM telemetry_rpctotal r JOIN site_server s ON s.id = r.server_id
        WHERE s.filesystem_id = w.filesystem_id
            AND r.start > w.start - interval '10 seconds' AND r.start < w."end"
        HAVING NOT bool_or(opcode = %(MDS_BATCH)s)  -- one such RPC may carry many operations
    ) trace ON place <= {checked} AND job_id = ANY(%(traced)s) AND NOT EXISTS (
        SELECT FROM site_server s
        WHERE s.filesystem_id = w.filesystem_id AND s.kind = 'mds' AND NOT coalesce((
            SELECT range_agg(tstzrange(c.start, c."end")) @> tstzrange(w.start, w."end")
            FROM telemetry_coverage c
            WHERE c.source = %(RPC_TRACE)s AND c.source_id = s.id
                AND c.start < w."end" AND c."end" > w.start
        ), false)
    )
),
highest AS (
    SELECT DISTINCT ON (job_id) job_id, at
    FROM (
        SELECT job_id, at, sum(sum(change)) OVER (PARTITION BY job_id ORDER BY at) AS rate
        FROM (
            SELECT job_id, start AS at, rate AS change FROM windows
            UNION ALL
            SELECT job_id, "end", -rate FROM windows
        ) changes
        GROUP BY job_id, at
    ) steps
    ORDER BY job_id, rate DESC, at
)
SELECT job_id, sum(rate) AS rate, max(width) AS width, bool_or(is_capped) AS is_capped
FROM highest JOIN windows USING (job_id)
WHERE start <= at AND at < "end"
GROUP BY job_id
"""
).format(metadata=metadata_operations("w"), gap=MAX_GAP, checked=sql.Literal(_CHECKED))


def set_peak(row: JobStatistics, peak: dict[str, Any] | None) -> None:
    """Set the peak of a job from a row of `PEAKS`."""
    # A window longer than the run does not show a peak.
    if peak and row.duration_s is not None and peak["width"] <= row.duration_s:
        row.peak_metadata_rate, row.peak_resolution_s = peak["rate"], peak["width"]
        row.peak_is_capped = peak["is_capped"]
