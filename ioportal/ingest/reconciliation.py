"""Reconciliation: re-add the stored rows of a segment and compare them with its account."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import polars as pl
from django.db import connection
from django.db.models import Case, Count, DateTimeField, F, Max, Q, Sum, Value, When
from django.db.models.functions import Coalesce

from collectors import tables
from collectors.tables import COUNTERS, OPERATIONS, REQUEST_COUNTERS, TIMES, UTC_US
from ioportal.ingest.attribution import namesakes
from ioportal.ingest.models import LateRows, Segment
from ioportal.jobs import panda_jobs
from ioportal.jobs.models import Job, WorkloadJob
from ioportal.site.models import Counter, Target
from ioportal.telemetry import levels, retention
from ioportal.telemetry.models import (
    AttributedRpc,
    Coverage,
    HostWindow,
    IoWindow,
    JobDelta,
    JobSnapshot,
    Principal,
    RequestWindow,
    RpcWindow,
    ServiceSnapshot,
    TargetDelta,
    TargetSnapshot,
    WindowQuerySet,
    floor_to_window,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from django.db.models import QuerySet

    from collectors.tables import Table
    from ioportal.telemetry.levels import Level

_ATTRIBUTABLE = (tables.RPC_WINDOWS, tables.JOB_COUNTERS)
# Levels of a table's rows: raw from files, raw from agents, attributed.
_LEVELS: dict[Table, tuple[Level, Level, Level | None]] = {
    tables.RPC_WINDOWS: (levels.RPC_WINDOWS, levels.RPC_WINDOWS, levels.ATTRIBUTED_RPCS),
    tables.JOB_COUNTERS: (levels.JOB_SNAPSHOTS, levels.JOB_DELTAS, levels.IO_WINDOWS),
    tables.TARGET_COUNTERS: (levels.TARGET_SNAPSHOTS, levels.TARGET_DELTAS, None),
    tables.EXPORT_COUNTERS: (levels.HOST_WINDOWS, levels.HOST_WINDOWS, None),
    tables.SERVICE_COUNTERS: (levels.SERVICE_SNAPSHOTS, levels.SERVICE_SNAPSHOTS, None),
    tables.REQUEST_WINDOWS: (levels.REQUEST_WINDOWS, levels.REQUEST_WINDOWS, None),
}
_ATTRIBUTED = (Principal.JOB, Principal.PROCESS, Principal.HOST)
_MOMENT = timedelta(microseconds=1)
_RPCS: Any = F("count")
_TOTAL = IoWindow.Basis.TOTAL
_UNKNOWN_TIME = Value(None, DateTimeField())
_OPERATIONS: Any = reduce(add, (Coalesce(F(name), Value(0)) for name in OPERATIONS))
_DELTAS: dict[Table, tuple[Any, Any]] = {  # model and operations
    tables.JOB_COUNTERS: (JobDelta, _OPERATIONS),
    tables.TARGET_COUNTERS: (TargetDelta, _OPERATIONS),
    tables.EXPORT_COUNTERS: (HostWindow, F("metadata_operations")),
}
STORED: dict[Table, Callable[[Segment], int]] = {}  # counts the stored rows of other tables


_WITHOUT_JOBS = """
SELECT g.id, array_agg(DISTINCT c.name ORDER BY c.name)
FROM ingest_segment g
CROSS JOIN LATERAL (
    SELECT filesystem_id FROM site_server WHERE id = g.server_id
    UNION
    SELECT t.filesystem_id FROM ingest_segment_targets m JOIN site_target t ON t.id = m.target_id
    WHERE m.segment_id = g.id
) f
JOIN site_filesystem_clusters fc USING (filesystem_id)
JOIN site_cluster c ON c.id = fc.cluster_id
WHERE g.id = ANY(%(segments)s) AND g.start IS NOT NULL
GROUP BY g.id
HAVING NOT bool_or(EXISTS (
    SELECT FROM jobs_job j
    WHERE j.cluster_id = c.id AND j.started_at < g."end" + %(after)s
        AND (j.ended_at IS NULL OR j.ended_at > g.start - %(before)s)
))
ORDER BY g.id
"""


@dataclass
class SegmentAccount:
    """Lines and operations of one or more segments; counters count since the previous read."""

    lines: int = 0
    accepted: int = 0
    rejected: int = 0
    irrelevant: int = 0
    operations: int = 0
    attributed: dict[str, int] = field(
        default_factory=lambda: {str(kind.label): 0 for kind in _ATTRIBUTED}
    )
    pending: int = 0
    ambiguous: int = 0
    unattributed: int = 0
    contradicted: int = 0

    @classmethod
    def for_segments(cls, segments: Collection[Segment]) -> SegmentAccount:
        """Add up the lines of segments and their operations by current attribution."""
        account = cls()
        for name in ("lines", "accepted", "rejected", "irrelevant"):
            setattr(account, name, sum(getattr(segment, name) for segment in segments))
        for kind, operations in attributed_operations(*segments).items():
            account.operations += operations
            if kind in _ATTRIBUTED:
                account.attributed[str(kind.label)] += operations
            else:
                setattr(account, str(kind.label), operations)
        return account


def attributed_operations(*segments: Segment) -> dict[Principal, int]:
    """Return operations of segments by kind of principal."""
    reads = [segment.pk for segment in segments if segment.table is tables.JOB_COUNTERS]
    windows: list[tuple[QuerySet[Any], Any]] = []
    if reads:
        windows.append((IoWindow.objects.filter(segment_id__in=reads), _OPERATIONS))
    for segment in segments:
        if segment.table is tables.RPC_WINDOWS:
            attributed = _within(segment, AttributedRpc.objects.all())
            windows.append((attributed.filter(segment_id=segment.pk), _RPCS))
    operations: dict[Principal, int] = defaultdict(int)
    for rows, amount in windows:
        for row in rows.values("kind").annotate(amount=Sum(amount)):
            operations[Principal(row["kind"])] += int(row["amount"])
    return dict(operations)  # a template would look up `items` as a key of a defaultdict


def without_jobs(segments: Collection[Segment]) -> dict[tuple[str, ...], list[Segment]]:
    """Return the segments of whose time range no job is known, by the names of their clusters."""
    attributable = {segment.pk: segment for segment in segments if segment.table in _ATTRIBUTABLE}
    values: dict[str, Any] = {
        "segments": list(attributable),
        "before": namesakes.ENDED_WITHIN,
        "after": namesakes.STARTS_WITHIN,
    }
    lacking: dict[tuple[str, ...], list[Segment]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(_WITHOUT_JOBS, values)
        for key, clusters in cursor.fetchall():
            lacking[tuple(clusters)].append(attributable[key])
    return lacking


def unlinked_workload_jobs(segment: Segment) -> int:
    """Return the number of PanDA jobs of a segment without a link to a batch job."""
    if segment.table is not tables.WORKLOAD_JOBS:
        return 0
    return WorkloadJob.objects.filter(records__segment=segment, jobs=None).distinct().count()


@dataclass(frozen=True)
class RetainedParts:
    """The parts of a segment that retention has left and that can be re-added."""

    raw: bool
    attributed: bool
    expected: bool  # the operations to attribute can be computed

    @property
    def complete(self) -> bool:
        """Whether all parts can be re-added."""
        return self.raw and self.attributed and self.expected


def retained_parts(segment: Segment) -> RetainedParts:
    """Return which parts of a segment can still be re-added."""
    if segment.table not in _LEVELS or segment.start is None or segment.end is None:
        return RetainedParts(raw=True, attributed=True, expected=True)
    from_file, from_agent, attributed = _LEVELS[segment.table]
    start, end = floor_to_window(segment.start), segment.end
    late_rows = LateRows.objects.filter(start__lte=end, end__gte=start).filter(
        Q(server=segment.server) | Q(target__segment=segment) | Q(segment=segment)
    )
    is_raw = retention.is_retained([from_agent if segment.is_batch else from_file], start, end)
    return RetainedParts(
        raw=is_raw,
        attributed=attributed is None
        or (retention.is_retained([attributed], start, end) and not late_rows.exists()),
        expected=_can_expect(segment, is_raw=is_raw),
    )


def _can_expect(segment: Segment, *, is_raw: bool) -> bool:
    """Return whether the operations of a segment to attribute can be computed."""
    if segment.table is not tables.JOB_COUNTERS or segment.start is None:
        return True
    if not segment.is_batch:
        return is_raw
    targets = segment.targets.values_list("pk", flat=True)
    reads = [read_at for target in targets if (read_at := _last_read(target, segment.start))]
    # Without reads before its first poll, all operations of a batch are attributed.
    return not reads or (
        is_raw and retention.is_retained([levels.JOB_SNAPSHOTS], min(reads), max(reads))
    )


def discrepancies(segment: Segment, parts: RetainedParts) -> list[str]:
    """Re-add the stored rows of a segment; return a sentence for every figure that differs.

    Only the retained `parts` are re-added.
    """
    sentences = []
    if segment.lines != segment.accepted + segment.rejected + segment.irrelevant:
        sentences.append(f"{segment.lines} lines are not the sum of their kinds")
    if sum(segment.rejected_by_reason.values()) != segment.rejected:
        sentences.append(f"{segment.rejected} rejects are not the sum of their reasons")
    if parts.raw:
        records, operations = _stored(segment)
        if records != segment.records:
            sentences.append(f"{segment.records} records were accepted, {records} are stored")
        if operations != segment.operations:
            sentences.append(
                f"{segment.operations} operations were counted, {operations} are stored"
            )
    if parts.attributed and parts.expected:
        attributed = sum(attributed_operations(segment).values())
        expected = _expected(segment)
        if attributed != expected:
            sentences.append(f"{expected} operations expected, {attributed} attributed")
    if wrong_links := _wrong_links(segment):
        sentences.append(
            f"{wrong_links} links of its PanDA jobs to batch jobs are missing or wrong"
        )
    return sentences


def _within(segment: Segment, windows: WindowQuerySet) -> WindowQuerySet:
    """Return the windows that begin within the time range of the segment."""
    if segment.start is None or segment.end is None:
        return windows.none()
    return windows.between(floor_to_window(segment.start), segment.end + _MOMENT)


def last_counter_changes(reads: Collection[Segment]) -> dict[int, datetime]:
    """Return the latest change of counters by segment, where the input contains its time."""
    changes: dict[int, datetime] = {}
    read_times = [read.start for read in reads if read.start]
    if not read_times:
        return changes
    targets = Target.objects.filter(segment__in=reads).values_list("pk", flat=True)
    of_targets = {"target_id__in": set(targets)}
    of_servers = {"server_id__in": {read.server_id for read in reads if read.server_id}}
    snapshots: tuple[tuple[Any, dict[str, set[int]]], ...] = (
        (JobSnapshot, of_targets),
        (TargetSnapshot, of_targets),
        (ServiceSnapshot, of_servers),
    )
    for model, filters in snapshots:
        rows = model.objects.filter(
            segment_id__in=[read.pk for read in reads],
            taken_at__gte=min(read_times),
            taken_at__lte=max(read_times),
            snapshot_at__isnull=False,
            **filters,
        )
        changes |= dict(rows.values_list("segment_id").annotate(Max("snapshot_at")))
    return changes


def _stored(segment: Segment) -> tuple[int, int]:
    """Return the number of raw rows of a segment and the sum of their operations."""
    raw: QuerySet[Any]
    read_at = segment.end
    if stored := STORED.get(segment.table):
        return stored(segment), 0
    if segment.table is tables.RPC_WINDOWS:
        raw, amount = _within(segment, RpcWindow.objects.all()), _RPCS
    elif segment.table is tables.REQUEST_WINDOWS:
        raw, amount = _within(segment, RequestWindow.objects.all()), _RPCS
    elif segment.is_batch and segment.table in _DELTAS:
        polled = (segment.start, segment.end)
        model, amount = _DELTAS[segment.table]
        raw = model.objects.filter(end__range=polled)
    elif read_at and segment.table is tables.JOB_COUNTERS:
        raw, amount = JobSnapshot.objects.filter(taken_at=read_at), _OPERATIONS
    elif read_at and segment.table is tables.TARGET_COUNTERS:
        raw, amount = TargetSnapshot.objects.filter(taken_at=read_at), _OPERATIONS
    elif read_at and segment.table is tables.SERVICE_COUNTERS:
        raw, amount = ServiceSnapshot.objects.filter(taken_at=read_at), _requests()
    else:
        return segment.accounting_records.count(), 0
    totals = raw.filter(segment_id=segment.pk).aggregate(
        records=Count("segment_id"), operations=Sum(amount)
    )
    # Rows of hosts are added up when a job on them arrives: their number changes, not their sum.
    records = segment.records if segment.table is tables.EXPORT_COUNTERS else totals["records"]
    return records, int(totals["operations"] or 0)


def _requests() -> Any:
    """Return the expression for the requests in a snapshot of a service counter."""
    counters = Counter.objects.filter(name__in=REQUEST_COUNTERS).values("pk")
    return Case(When(counter_id__in=counters, then=F("samples")), default=Value(0))


def _wrong_links(segment: Segment) -> int:
    """Return the number of missing or wrong links of a segment's PanDA jobs to batch jobs.

    Computed in Python, independently of the SQL that creates the links.
    """
    if segment.table is not tables.WORKLOAD_JOBS:
        return 0
    workload_jobs = list(WorkloadJob.objects.filter(records__segment=segment).distinct())
    jobs: dict[str, list[Job]] = defaultdict(list)
    for job in Job.objects.filter(
        cluster=segment.cluster,
        batch_id__in={job.batch_id for job in workload_jobs} - {""},
        started_at__isnull=False,
    ):
        jobs[job.batch_id].append(job)
    expected = {
        (workload_job.pk, job.pk)
        for workload_job in workload_jobs
        for job in _enclosing_jobs(workload_job, jobs[workload_job.batch_id])
    }
    links = WorkloadJob.jobs.through.objects.filter(workloadjob__records__segment=segment)
    return len(expected.symmetric_difference(links.values_list("workloadjob_id", "job_id")))


def _enclosing_jobs(workload_job: WorkloadJob, jobs: list[Job]) -> list[Job]:
    """Return the batch jobs, one per array index, in which a PanDA job ran.

    Args:
        workload_job: the PanDA job.
        jobs: the candidates, all with its batch id.
    """
    times = filter(None, (workload_job.started_at, workload_job.ended_at, workload_job.modified_at))
    start = next(times, None)
    if start is None:
        return []
    end = workload_job.ended_at or max(start, workload_job.modified_at or start)

    def fit(job: Job) -> tuple[bool, timedelta, timedelta]:
        started = job.started_at or start
        return (
            started > start + panda_jobs.CLOCK_TOLERANCE,
            abs(started - start),
            start - job.submitted_at,
        )

    nearest: dict[str, Job] = {}
    for job in sorted(jobs, key=fit):
        started, ended = job.started_at, job.ended_at
        if (
            workload_job.array_index in {"", job.array_index}
            and started
            and started <= end + panda_jobs.CLOCK_TOLERANCE
            and (ended is None or ended >= start - panda_jobs.CLOCK_TOLERANCE)
        ):
            nearest.setdefault(job.array_index, job)
    return list(nearest.values())


def _expected(segment: Segment) -> int:
    """Return the number of operations of a segment to attribute."""
    if segment.table is tables.RPC_WINDOWS:
        return segment.operations
    if segment.table is not tables.JOB_COUNTERS or segment.end is None:
        return 0
    if segment.is_batch:
        return segment.operations - _counted_by_files(segment)
    targets = segment.targets.values_list("pk", flat=True)
    return sum(_gained_since_previous_read(target_id, segment.end) for target_id in targets)


def _counted_by_files(batch: Segment) -> int:
    """Return the operations in a batch's first polls that reads from files counted before."""
    totals = JobDelta.objects.filter(
        segment_id=batch.pk, end__range=(batch.start, batch.end), end=F("start"), basis=_TOTAL
    )
    counted = 0
    for row_target_id, polled_at in totals.values_list("target_id", "end").distinct():
        kind = {"pk": row_target_id} if row_target_id else {"kind": Target.Kind.OST}
        reads = [
            _snapshot(target_id, read_at)
            for target_id in batch.targets.filter(**kind).values_list("pk", flat=True)
            if (read_at := _last_read(target_id, polled_at))
        ]
        if reads:
            now = _entries(totals.filter(target_id=row_target_id, end=polled_at))
            counted += _gained(now, now.clear()) - _gained(now, _added_up(reads))
    return counted


def _last_read(target_id: int, polled_at: datetime) -> datetime | None:
    """Return the time of a target's last read from a file, if no poll is between it and a poll."""
    observed = Coverage.objects.filter(source=Coverage.Source.JOB_STATS, source_id=target_id)
    from_files = Q(start__lte=polled_at, end=F("start"))
    last = observed.filter(from_files | Q(start__lt=polled_at)).order_by("-start").first()
    return last.start if last and last.start == last.end else None


def _added_up(reads: list[pl.DataFrame]) -> pl.DataFrame:
    """Add up the entries of OSTs; a time is unknown if any of its parts is."""
    known = {
        time: (pl.col(time).is_not_null() | (pl.col(name).fill_null(0) == 0)).all()
        for time, name in TIMES.items()
    }
    return (
        pl.concat(reads)
        .group_by("source_job_id")
        .agg(
            pl.lit(None, UTC_US).alias("entry_started_at"),
            *(
                pl.when(known.get(name, True) & pl.col(name).is_not_null().any())
                .then(pl.col(name).sum())
                .alias(name)
                for name in COUNTERS
            ),
        )
    )


def _gained_since_previous_read(target_id: int, read_at: datetime) -> int:
    """Return the operations that a target's counters gained since the previous read."""
    reads = Coverage.objects.filter(
        source=Coverage.Source.JOB_STATS, source_id=target_id, end=F("start")
    )
    before = reads.filter(start__lt=read_at).order_by("-start").first()
    now = _snapshot(target_id, read_at)
    return _gained(now, _snapshot(target_id, before.start) if before else now.clear())


def _gained(now: pl.DataFrame, old: pl.DataFrame) -> int:
    """Return the operations that entries gained since an earlier read.

    Computed in Python, independently of the SQL that derives I/O windows.
    """
    both = now.join(
        old.with_columns(was_read=pl.lit(value=True)), on="source_job_id", how="left", suffix="_old"
    )
    fell = pl.any_horizontal(pl.col(name) < pl.col(f"{name}_old") for name in COUNTERS)
    restarted = pl.col("entry_started_at") > pl.col("entry_started_at_old")
    continued = pl.col("was_read") & ~(
        fell.fill_null(value=False) | restarted.fill_null(value=False)
    )
    gained = [  # null, and therefore not added, where the counter is missing in one of the reads
        pl.col(name) - pl.when(continued).then(pl.col(f"{name}_old")).otherwise(0)
        for name in OPERATIONS
    ]
    return int(both.select(pl.sum_horizontal(gained).sum()).item() or 0)


def _snapshot(target_id: int, taken_at: datetime) -> pl.DataFrame:
    return _entries(JobSnapshot.objects.filter(target_id=target_id, taken_at=taken_at))


def _entries(rows: QuerySet[Any]) -> pl.DataFrame:
    """Return the counters of each entry; increments do not show when an entry started."""
    started_at = F("entry_started_at") if rows.model is JobSnapshot else _UNKNOWN_TIME
    return pl.DataFrame(
        list(rows.values_list("source_job_id", started_at, *COUNTERS)),
        schema={
            "source_job_id": pl.Int32,
            "entry_started_at": UTC_US,
            **dict.fromkeys(COUNTERS, pl.Int64),
        },
        orient="row",
    )
