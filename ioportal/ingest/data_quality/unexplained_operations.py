"""Operations of an MDT that job_stats does not explain: job ids that it lost or never counted.

md_stats counts the operations of all clients, job_stats the operations of each job id. Both are
compared by hour, by the start of each interval between two reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from django.db import connection
from django.db.models import Min
from psycopg import sql

from ioportal.ingest.models import DirtyDeltas, DirtyReads
from ioportal.telemetry import coverage
from ioportal.telemetry.coverage import Interval
from ioportal.telemetry.models import Coverage, DirtyIo, IoWindow
from ioportal.telemetry.sums import metadata_increase, metadata_operations

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from ioportal.site.models import Target

HOUR: Final = timedelta(hours=1)
_OBSERVED: Final = 0.95  # of an hour, by both sources

_BY_HOUR = (
    sql.SQL("""
WITH reads AS (
    SELECT target_id, lag(taken_at) OVER earlier AS start, {increase} AS operations
    FROM telemetry_targetsnapshot t
    WHERE target_id = ANY(%(targets)s)
        AND taken_at >= %(start)s - interval '1 hour' AND taken_at < %(end)s + interval '1 hour'
    WINDOW earlier AS (PARTITION BY target_id ORDER BY taken_at)
),
counted AS (
    SELECT target_id, start, operations FROM reads WHERE operations IS NOT NULL  -- not restarted
    UNION ALL
    SELECT target_id, start, {operations} FROM telemetry_targetdelta t
    WHERE target_id = ANY(%(targets)s) AND basis <> %(TOTAL)s
        AND "end" > %(start)s AND start < %(end)s
),
attributed AS (
    SELECT target_id, start, metadata_operations AS operations FROM telemetry_iototal
    WHERE target_id = ANY(%(targets)s) AND basis <> %(TOTAL)s
        AND start >= %(start)s AND start < %(end)s
)
SELECT target_id, date_bin('1 hour', start, %(start)s) AS hour,
    sum(operations) FILTER (WHERE by_all)::bigint, sum(operations) FILTER (WHERE NOT by_all)::bigint
FROM (
    SELECT *, true AS by_all FROM counted WHERE start >= %(start)s AND start < %(end)s
    UNION ALL
    SELECT *, false FROM attributed
) parts
GROUP BY target_id, hour
HAVING sum(operations) FILTER (WHERE by_all) > 0
ORDER BY target_id, hour
""")
    .format(operations=metadata_operations("t"), increase=metadata_increase("t"))
    .as_string()
)


@dataclass(frozen=True)
class TargetHour:
    """Metadata operations of an MDT in an hour that both sources observed."""

    target: Target
    start: datetime
    counted: int  # in md_stats
    explained: int  # in job_stats

    @property
    def share(self) -> float:
        """The unexplained share, 0 to 1."""
        return max(0.0, 1 - self.explained / self.counted)


def by_hour(targets: Iterable[Target], start: datetime, end: datetime) -> list[TargetHour]:
    """Compare the sources in each hour that begins in [start, end), by target and time.

    Hours that either source observed for less than 95 %, or with operations that await attribution
    or roll-up, are omitted.
    """
    by_id = {target.pk: target for target in targets}
    start = start.replace(minute=0, second=0, microsecond=0)
    values: dict[str, Any] = {
        "targets": [*by_id], "start": start, "end": end, "TOTAL": IoWindow.Basis.TOTAL.value,
    }  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(_BY_HOUR, values)
        rows = cursor.fetchall()
    gaps = {pk: target.poll_gap for pk, target in by_id.items()}
    pending = _pending_since(gaps)
    observed = [
        _observed_hours(source, gaps, start, end)
        for source in (Coverage.Source.MD_STATS, Coverage.Source.JOB_STATS)
    ]
    return [
        TargetHour(by_id[pk], hour, counted, explained or 0)
        for pk, hour, counted, explained in rows
        if all((pk, hour) in hours for hours in observed)
        and (pk not in pending or hour + HOUR <= pending[pk])
    ]


def _pending_since(gaps: Mapping[int, timedelta]) -> dict[int, datetime]:
    """Return the start of the first operations in job_stats that are not rolled up, by target."""
    first = Min("start")
    rows = chain(
        DirtyIo.objects.filter(target_id__in=gaps).values_list("target_id").annotate(first),
        DirtyDeltas.objects.filter(segment__targets__in=gaps)
        .values_list("segment__targets")
        .annotate(first),
        (  # operations before a read, since the read before it
            (target, start - gaps[target])
            for target, start in DirtyReads.objects.filter(target__in=gaps)
            .values_list("target_id")
            .annotate(first)
        ),
    )
    pending: dict[int, datetime] = {}
    for target, start in rows:
        pending[target] = min(start, pending.get(target, start))
    return pending


def _observed_hours(
    source: Coverage.Source, gaps: Mapping[int, timedelta], start: datetime, end: datetime
) -> set[tuple[int, datetime]]:
    """Return the targets and hours that a source observed."""
    seconds: dict[tuple[int, datetime], float] = {}
    for pk, interval in coverage.by_source(source, gaps, start, end + HOUR):
        since = max(interval.start, start)
        while since < min(interval.end, end + HOUR):
            hour = since.replace(minute=0, second=0, microsecond=0)
            until = min(interval.end, hour + HOUR)
            seconds[pk, hour] = seconds.get((pk, hour), 0.0) + Interval(since, until).seconds
            since = hour + HOUR
    return {place for place, known in seconds.items() if known >= _OBSERVED * HOUR.total_seconds()}
