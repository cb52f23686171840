"""Quality of data: unexplained operations, evidence for job ids, and late accounting.

md_stats counts the operations of all clients, job_stats the operations of each job id. Both are
compared by hour, by the start of each interval between two reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from django.db import connection
from django.db.models import Count, Min
from psycopg import sql

from ioportal.ingest.attribution.namesakes import ENDED_WITHIN, STARTS_WITHIN
from ioportal.ingest.models import DirtyDeltas, DirtyReads, Segment
from ioportal.telemetry import coverage
from ioportal.telemetry.coverage import Interval
from ioportal.telemetry.models import AttributedRpc, Coverage, DirtyIo, IoWindow, Method, Principal
from ioportal.telemetry.sums import metadata_increase, metadata_operations

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from ioportal.jobs.models import Job
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


def unexplained_operations(
    targets: Iterable[Target], start: datetime, end: datetime
) -> list[TargetHour]:
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


RPC_PERIOD: Final = timedelta(hours=1)
COUNTER_PERIOD: Final = timedelta(days=1)

_OF_RPCS = """
SELECT sum(count)::float8,
    sum(count) FILTER (WHERE method = ANY(%(by_node)s))::float8,
    sum(count) FILTER (WHERE method = %(by_uid)s)::float8,
    sum(count) FILTER (WHERE method = ANY(%(unverified)s))::float8,
    sum(count) FILTER (WHERE kind = %(CONTRADICTED)s OR method = %(contradicted_id)s)::float8
FROM telemetry_attributedrpc
WHERE start >= %(since)s AND start < %(now)s AND kind IN (%(JOB)s, %(CONTRADICTED)s)
"""
# A counter of a job either has the owner's uid or the host of an own node, or no evidence.
_OF_COUNTERS = """
SELECT sum(operations)::float8,
    sum(operations) FILTER (WHERE kind = %(JOB)s AND has_host)::float8,
    sum(operations) FILTER (WHERE kind = %(JOB)s AND NOT has_host AND has_uid)::float8,
    sum(operations) FILTER (WHERE kind = %(JOB)s AND NOT has_host AND NOT has_uid)::float8,
    sum(operations) FILTER (WHERE kind = %(CONTRADICTED)s)::float8
FROM (
    SELECT w.kind, w.metadata_operations AS operations,
        EXISTS (
            SELECT FROM jobs_allocation a JOIN site_node n ON n.id = a.node_id
            WHERE a.job_id = w.job_id AND s.host <> ''
                AND n.name IN (s.host, split_part(s.host, '.', 1))
        ) AS has_host,
        s.uid > 0 AND EXISTS (
            SELECT FROM jobs_job j JOIN site_useraccount u ON u.name = j.owner
            WHERE j.id = w.job_id AND u.uid = s.uid
        ) AS has_uid
    FROM telemetry_iotenminutes w JOIN site_sourcejobid s ON s.id = w.source_job_id
    WHERE w.bucket >= %(since)s AND w.bucket < %(now)s AND w.kind IN (%(JOB)s, %(CONTRADICTED)s)
) counted
"""


@dataclass(frozen=True)
class JobIdEvidence:
    """Operations of jobs in recent data, by the evidence for their jobs."""

    source: str
    operations: float
    by_node: float  # operations verified by node
    by_uid: float  # verified by user id
    unverified: float
    contradicted: float


def job_id_evidence(now: datetime) -> list[JobIdEvidence]:
    """Return the evidence in recent traces and counters; sources without operations are omitted."""
    values: dict[str, Any] = {
        **{kind.name: kind.value for kind in (Principal.JOB, Principal.CONTRADICTED)},
        "by_node": [Method.NODE, Method.NODE_PROCESS, Method.JOB_ID_NODE],
        "by_uid": Method.JOB_ID_UID,
        "unverified": [Method.JOB_ID, Method.JOB_ID_ALONE],
        "contradicted_id": Method.CONTRADICTED_ID,
        "now": now,
    }
    evidence = []
    with connection.cursor() as cursor:
        for source, query, period in (
            ("RPC traces, last hour", _OF_RPCS, RPC_PERIOD),
            ("Counters, last 24 hours", _OF_COUNTERS, COUNTER_PERIOD),
        ):
            cursor.execute(query, values | {"since": now - period})
            operations, *parts = cursor.fetchone()
            if operations:
                evidence.append(JobIdEvidence(source, operations, *(part or 0.0 for part in parts)))
    return evidence


@dataclass(frozen=True)
class LateAccounting:
    """Segments of a job that were loaded before its first record."""

    segments: int
    since: datetime  # when the first segment was loaded
    until: datetime  # when the first record was loaded


def late_accounting(job: Job) -> LateAccounting | None:
    """Return the late accounting of a job; None if a record came first or there is none."""
    recorded = job.records.aggregate(at=Min("segment__loaded_at"))["at"]
    if recorded is None or job.started_at is None or job.known_until is None:
        return None
    start, end = job.started_at - STARTS_WITHIN, job.known_until + ENDED_WITHIN
    segments = [
        windows.objects.between(start, end).for_job(job.pk).values("segment_id").distinct()
        for windows in (AttributedRpc, IoWindow)
    ]
    before = Segment.objects.filter(pk__in=segments[0].union(segments[1]), loaded_at__lt=recorded)
    extent = before.aggregate(segments=Count("pk"), since=Min("loaded_at"))
    return LateAccounting(**extent, until=recorded) if extent["segments"] else None
