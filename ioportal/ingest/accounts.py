"""Accounts: where every line and operation of a segment went, re-added from what is stored."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import polars as pl
from django.db.models import Case, Count, F, Max, Q, Sum, Value, When
from django.db.models.functions import Coalesce

from collectors.lustre.service_stats import WAIT
from collectors.tables import COUNTERS, OPERATIONS, UTC_US
from ioportal.ingest.attribution import named
from ioportal.ingest.models import Batch, Segment
from ioportal.jobs import workloads
from ioportal.jobs.models import Cluster, Counter, Job, WorkloadJob
from ioportal.telemetry.models import (
    ChargedRpc,
    Coverage,
    IoWindow,
    JobDelta,
    JobSnapshot,
    Principal,
    RpcWindow,
    ServiceSnapshot,
    TargetDelta,
    TargetSnapshot,
    WindowQuerySet,
    floor_to_window,
)

if TYPE_CHECKING:
    from django.db.models import QuerySet

_OF_RPCS = (Segment.Format.RPCTRACE, Segment.Format.REQ_HISTORY)
_CHARGEABLE = (*_OF_RPCS, Segment.Format.JOB_STATS)
_DELTAS: dict[str, Any] = {
    Segment.Format.JOB_STATS: JobDelta,
    Segment.Format.MD_STATS: TargetDelta,
}
_CHARGED = (Principal.JOB, Principal.PROCESS, Principal.HOST)
_MOMENT = timedelta(microseconds=1)
_RPCS: Any = F("count")
_OPERATIONS: Any = reduce(add, (Coalesce(F(name), Value(0)) for name in OPERATIONS))


@dataclass
class SegmentAccount:
    """What a segment, or several, brought; operations of counters are those since the last read."""

    lines: int = 0
    accepted: int = 0
    rejected: int = 0
    irrelevant: int = 0
    operations: int = 0
    charged: dict[str, int] = field(
        default_factory=lambda: {str(kind.label): 0 for kind in _CHARGED}
    )
    pending: int = 0
    ambiguous: int = 0
    unattributed: int = 0

    def add(self, segment: Segment) -> None:
        """Add a segment's lines as counted, and its operations as they are charged now."""
        for name in ("lines", "accepted", "rejected", "irrelevant"):
            setattr(self, name, getattr(self, name) + getattr(segment, name))
        for kind, operations in charged_operations(segment).items():
            self.operations += operations
            if kind in _CHARGED:
                self.charged[str(kind.label)] += operations
            else:
                name = str(kind.label)
                setattr(self, name, getattr(self, name) + operations)


def charged_operations(segment: Segment) -> dict[Principal, int]:
    """Return a segment's operations by the kind of principal they are charged to."""
    windows: QuerySet[Any]
    if segment.format in _OF_RPCS:
        windows, amount = _within(segment, ChargedRpc.objects.all()), _RPCS
    elif segment.format == Segment.Format.JOB_STATS:
        windows, amount = IoWindow.objects.all(), _OPERATIONS
    else:
        return {}
    rows = windows.filter(segment_id=segment.pk).values("kind").annotate(amount=Sum(amount))
    return {Principal(row["kind"]): int(row["amount"]) for row in rows}


def without_jobs(segment: Segment) -> list[str]:
    """Return the clusters that a segment is to be charged to, if no job of its time is known."""
    if segment.start is None or segment.end is None or segment.format not in _CHARGEABLE:
        return []
    clusters = Cluster.objects.filter(
        Q(filesystems__servers=segment.server) | Q(filesystems__targets__segment=segment)
    ).distinct()
    ran = Job.objects.filter(cluster__in=clusters).overlapping(
        segment.start - named.ENDED_WITHIN, segment.end + named.STARTS_WITHIN
    )
    return [] if ran.exists() else [cluster.name for cluster in clusters]


def inside_no_job(segment: Segment) -> int:
    """Return how many PanDA jobs of a segment are linked to no batch job."""
    if segment.format != Segment.Format.PANDA:
        return 0
    return WorkloadJob.objects.filter(records__segment=segment, jobs=None).distinct().count()


def differences(segment: Segment) -> list[str]:
    """Re-add what is stored of a segment; return a sentence for every figure that is off."""
    found = []
    if segment.lines != segment.accepted + segment.rejected + segment.irrelevant:
        found.append(f"{segment.lines} lines are not the sum of their kinds")
    if sum(segment.rejected_by_reason.values()) != segment.rejected:
        found.append(f"{segment.rejected} rejects are not the sum of their reasons")
    records, operations = _stored(segment)
    if records != segment.records:
        found.append(f"{segment.records} records were accepted, {records} are stored")
    if operations != segment.operations:
        found.append(f"{segment.operations} operations were counted, {operations} are stored")
    charged = sum(charged_operations(segment).values())
    expected = _expected(segment)
    if charged != expected:
        found.append(f"{expected} operations are to be charged, {charged} are")
    if off := _links_off(segment):
        found.append(f"{off} links of its PanDA jobs to batch jobs are missing or wrong")
    return found


def _within(segment: Segment, windows: WindowQuerySet) -> WindowQuerySet:
    """Return the windows that begin where the segment's records lie."""
    if segment.start is None or segment.end is None:
        return windows.none()
    return windows.between(floor_to_window(segment.start), segment.end + _MOMENT)


def changed_last(segment: Segment) -> datetime | None:
    """Return when the counters of a read changed last, as its text tells; None: it does not."""
    if segment.start is None:
        return None
    of_targets = {"target_id__in": list(segment.targets.values_list("pk", flat=True))}
    rows: QuerySet[Any]
    if segment.format == Segment.Format.MDS_STATS:
        rows = ServiceSnapshot.objects.filter(server_id=segment.server_id or 0)
    elif segment.format == Segment.Format.JOB_STATS:
        rows = JobSnapshot.objects.filter(**of_targets)
    else:
        rows = TargetSnapshot.objects.filter(**of_targets)
    rows = rows.filter(segment_id=segment.pk, taken_at=segment.start)
    newest: datetime | None = rows.aggregate(newest=Max("snapshot_at"))["newest"]
    return newest


def _stored(segment: Segment) -> tuple[int, int]:
    """Return how many raw rows a segment has, and their operations."""
    raw: QuerySet[Any]
    read_at = segment.end
    is_batch = Batch.objects.filter(segment=segment).exists()
    if segment.format in _OF_RPCS:
        raw, amount = _within(segment, RpcWindow.objects.all()), _RPCS
    elif is_batch and segment.format in _DELTAS:
        polled = (segment.start, segment.end)
        raw, amount = _DELTAS[segment.format].objects.filter(end__range=polled), _OPERATIONS
    elif read_at and segment.format == Segment.Format.JOB_STATS:
        raw, amount = JobSnapshot.objects.filter(taken_at=read_at), _OPERATIONS
    elif read_at and segment.format == Segment.Format.MD_STATS:
        raw, amount = TargetSnapshot.objects.filter(taken_at=read_at), _OPERATIONS
    elif read_at and segment.format == Segment.Format.MDS_STATS:
        raw, amount = ServiceSnapshot.objects.filter(taken_at=read_at), _requests()
    else:
        return segment.accounting_records.count(), 0
    totals = raw.filter(segment_id=segment.pk).aggregate(
        records=Count("segment_id"), operations=Sum(amount)
    )
    return totals["records"], int(totals["operations"] or 0)


def _requests() -> Any:
    """Return the requests that a snapshot of a service's counter tells of."""
    wait = Counter.objects.filter(name=WAIT).values("pk")
    return Case(When(counter_id__in=wait, then=F("samples")), default=Value(0))


def _links_off(segment: Segment) -> int:
    """Return how many links of a segment's PanDA jobs to batch jobs are missing or wrong.

    Reckoned here, not in the database, so that it is not the derivation checked against itself.
    """
    if segment.format != Segment.Format.PANDA:
        return 0
    inside = list(WorkloadJob.objects.filter(records__segment=segment).distinct())
    jobs: dict[str, list[Job]] = defaultdict(list)
    for job in Job.objects.filter(
        cluster=segment.cluster,
        batch_id__in={one.batch_id for one in inside} - {""},
        started_at__isnull=False,
    ):
        jobs[job.batch_id].append(job)
    expected = {(one.pk, job.pk) for one in inside for job in _held(one, jobs[one.batch_id])}
    links = WorkloadJob.jobs.through.objects.filter(workloadjob__records__segment=segment)
    return len(expected.symmetric_difference(links.values_list("workloadjob_id", "job_id")))


def _held(inside: WorkloadJob, jobs: list[Job]) -> list[Job]:
    """Return those of the batch jobs of its id that a PanDA job ran inside: one of each task."""
    known = filter(None, (inside.started_at, inside.ended_at, inside.modified_at))
    start = next(known, None)
    if start is None:
        return []
    end = inside.ended_at or max(start, inside.modified_at or start)

    def fit(job: Job) -> tuple[bool, timedelta, timedelta]:
        begun = job.started_at or start
        return begun > start + workloads.CLOCKS_DIFFER, abs(begun - start), start - job.submitted_at

    nearest: dict[str, Job] = {}
    for job in sorted(jobs, key=fit):
        begun, ended = job.started_at, job.ended_at
        if (
            inside.array_index in {"", job.array_index}
            and begun
            and begun <= end + workloads.CLOCKS_DIFFER
            and (ended is None or ended >= start - workloads.CLOCKS_DIFFER)
        ):
            nearest.setdefault(job.array_index, job)
    return list(nearest.values())


def _expected(segment: Segment) -> int:
    """Return the operations that a segment has to charge."""
    if segment.format in _OF_RPCS:
        return segment.operations
    if segment.format != Segment.Format.JOB_STATS or segment.end is None:
        return 0
    if Batch.objects.filter(segment=segment).exists():
        return segment.operations
    targets = segment.targets.values_list("pk", flat=True)
    return sum(_added(target_id, segment.end) for target_id in targets)


def _added(target_id: int, read_at: datetime) -> int:
    """Return what a target's counters gained since the read before, entry by entry.

    Reckoned here, not in the database, so that it is not the derivation checked against itself.
    """
    reads = Coverage.objects.filter(
        source=Coverage.Source.JOB_STATS, source_id=target_id, end=F("start")
    )
    before = reads.filter(start__lt=read_at).order_by("-start").first()
    now = _snapshot(target_id, read_at)
    old = _snapshot(target_id, before.start) if before else now.clear()
    both = now.join(
        old.with_columns(seen=pl.lit(value=True)), on="source_job_id", how="left", suffix="_old"
    )
    fell = pl.any_horizontal(pl.col(name) < pl.col(f"{name}_old") for name in COUNTERS)
    began_again = pl.col("entry_started_at") > pl.col("entry_started_at_old")
    went_on = pl.col("seen") & ~(fell.fill_null(value=False) | began_again.fill_null(value=False))
    gained = [  # null, and so left out, where the counter was not read both times
        pl.col(name) - pl.when(went_on).then(pl.col(f"{name}_old")).otherwise(0)
        for name in OPERATIONS
    ]
    return int(both.select(pl.sum_horizontal(gained).sum()).item() or 0)


def _snapshot(target_id: int, taken_at: datetime) -> pl.DataFrame:
    columns = ["source_job_id", "entry_started_at", *COUNTERS]
    rows = JobSnapshot.objects.filter(target_id=target_id, taken_at=taken_at)
    return pl.DataFrame(
        list(rows.values_list(*columns)),
        schema={
            "source_job_id": pl.Int32,
            "entry_started_at": UTC_US,
            **dict.fromkeys(COUNTERS, pl.Int64),
        },
        orient="row",
    )
