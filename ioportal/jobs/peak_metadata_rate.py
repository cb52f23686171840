"""The peak metadata rate: the highest total rate of a job's MDTs between two reads.

Definition: docs/metrics.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psycopg import sql

from ioportal.jobs.statistics_queries import MAX_GAP
from ioportal.telemetry.sums import metadata_operations

if TYPE_CHECKING:
    from ioportal.jobs.models import JobStatistics

# MDTs are read at different times, so rates of overlapping windows are added. A running sum finds
# the time of the peak; its rate is then summed separately, to avoid accumulated rounding errors.
PEAKS = sql.SQL(
    """
WITH windows AS MATERIALIZED (
    SELECT job_id, start, "end", width, operations / width AS rate
    FROM (
        SELECT job_id, start, "end", extract(epoch FROM "end" - start)::float8 AS width,
            sum({metadata})::float8 AS operations
        FROM telemetry_iowindow w LEFT JOIN site_target t ON t.id = w.target_id
        WHERE job_id = ANY(%(jobs)s) AND job_id <> 0 AND target_id <> 0 AND basis <> %(TOTAL)s
            AND "end" > start AND "end" - start <= {gap}
        GROUP BY job_id, start, "end"
    ) counted
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
SELECT job_id, sum(rate) AS rate, max(width) AS width
FROM highest JOIN windows USING (job_id)
WHERE start <= at AND at < "end"
GROUP BY job_id
"""
).format(metadata=metadata_operations("w"), gap=MAX_GAP)


def set_peak(row: JobStatistics, peak: dict[str, Any] | None) -> None:
    """Set the peak of a job from a row of `PEAKS`."""
    # A window longer than the run does not show a peak.
    if peak and row.duration_s is not None and peak["width"] <= row.duration_s:
        row.peak_metadata_rate, row.peak_resolution_s = peak["rate"], peak["width"]
