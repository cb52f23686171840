"""The attribution stage: claim dirty intervals and derive their rows again.

Filesystems are independent of each other: each has its transactions and its lock, so that workers
share them. Changed jobs concern all filesystems, and exclude them meanwhile. Loading continues;
every load leaves a dirty interval. Data that arrive after retention are not attributed but counted
as late (`LateRows`).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any

from django.db import connection, models, transaction
from django.db.models import F, Max, Min, Q

from collectors import formats, tables
from ioportal.core.postgres.advisory_locks import Lock, hold, hold_part, try_hold_part
from ioportal.ingest import impact_marks
from ioportal.ingest.attribution import deltas, hosts, reads, rpcs, seconds
from ioportal.ingest.attribution.namesakes import (
    ENDED_WITHIN,
    STARTS_WITHIN,
    named_by,
    with_namesakes,
)
from ioportal.ingest.attribution.rpc_claims import LEFT_OVER
from ioportal.ingest.models import (
    DirtyDeltas,
    DirtyExports,
    DirtyJob,
    DirtyReads,
    DirtyTrace,
    LateRows,
    Segment,
)
from ioportal.jobs.models import Allocation, DirtyEvidence, DirtyStatistics, Job
from ioportal.site.models import Nid, Server, SourceJobId, Target
from ioportal.telemetry import coverage, levels, retention, rollups
from ioportal.telemetry.coverage import Interval
from ioportal.telemetry.models import (
    AttributedRpc,
    Coverage,
    IoWindow,
    JobDelta,
    Principal,
    RpcWindow,
    floor_to_window,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

_WINDOW = timedelta(seconds=10)
# Levels that must be retained where rows are attributed: raw rows and derived rows.
_RPC_LEVELS = (levels.RPC_WINDOWS, levels.ATTRIBUTED_RPCS)
_IO_LEVELS = (levels.JOB_SNAPSHOTS, levels.IO_WINDOWS)
_DELTA_LEVELS = (levels.JOB_DELTAS, levels.IO_WINDOWS)
_MOMENT = timedelta(microseconds=1)
# Dirty intervals, and the way to their filesystem.
_BY_FILESYSTEM: tuple[tuple[Any, str], ...] = (
    (DirtyTrace.objects, "server__filesystem"),
    (DirtyReads.objects, "target__filesystem"),
    (DirtyDeltas.objects, "filesystem"),
    (DirtyExports.objects, "filesystem"),
)


def attribute_pending(limit: int = 500, only: Collection[int] | None = None) -> int:
    """Claim dirty intervals, derive their rows, and return the number of intervals.

    The caller repeats it until it returns 0. Safe to run repeatedly and concurrently: it waits for
    other workers.

    Args:
        limit: most intervals of each kind and filesystem.
        only: primary keys of filesystems; None: all.
    """
    filesystems = [key for key in pending_filesystems() if only is None or key in only]
    return attribute_jobs(limit) + sum(attribute_filesystem(key, limit) for key in filesystems)


def attribute_jobs(limit: int = 500) -> int:
    """Claim and attribute as `attribute_pending`, but changed jobs only."""
    with transaction.atomic():
        rpcs.request_awaited()
        if not DirtyJob.objects.exists():
            return 0
        lock()
        jobs = DirtyJob.objects.claim(limit)
        _mark_stale((_attribute_jobs(jobs), [row.start - STARTS_WITHIN for row in jobs]))
        return len(jobs)


def pending_filesystems() -> list[int]:
    """Return the filesystems with dirty intervals, in any order."""
    pending = (queryset.values_list(key) for queryset, key in _BY_FILESYSTEM)
    return [key for (key,) in next(pending).union(*pending)]


def attribute_filesystem(filesystem_id: int, limit: int = 500, *, wait: bool = True) -> int:
    """Claim and attribute as `attribute_pending`, but intervals of one filesystem only.

    Args:
        filesystem_id: primary key of the filesystem.
        limit: most intervals of each kind.
        wait: wait for another worker that attributes it; otherwise return 0.
    """
    with transaction.atomic():
        if wait:
            hold_part(Lock.ATTRIBUTION, filesystem_id)
        elif not try_hold_part(Lock.ATTRIBUTION, filesystem_id):
            return 0
        traces, polled, differences, exports = (
            queryset.filter(**{key: filesystem_id}).claim(limit) for queryset, key in _BY_FILESYSTEM
        )
        between = [_Span(*interval) for interval in reads.between(polled)]
        deltas.request_first_polls(polled)
        _mark_stale(
            (_attribute_exports(exports), [row.start for row in exports]),
            (_attribute_traces(traces), [row.start for row in traces]),
            (_attribute_reads(polled, between), [span.start for span in between]),
            (
                set(chain.from_iterable(map(_attribute_deltas, differences))),
                [row.start for row in differences],
            ),
        )
        return len(traces) + len(polled) + len(differences) + len(exports)


def _mark_stale(*changes: tuple[set[int], Sequence[datetime]]) -> None:
    """Request figures of jobs again: only evidence later than each change is evaluated again."""
    DirtyStatistics.objects.mark(set(chain.from_iterable(jobs for jobs, _ in changes)))
    for jobs, starts in changes:
        if jobs:
            DirtyEvidence.objects.mark(jobs, floor_to_window(min(starts)))


def lock() -> None:
    """Exclude other attribution until the transaction ends."""
    hold(Lock.ATTRIBUTION)


def mark_changed_site(nids: Collection[int] | None, **_: Any) -> None:
    """Mark what a change of the registered site touches; None: all derivable rows."""
    # What a worker derives at the moment has the former site, so its marks do not count.
    lock()
    if nids is None:
        mark_all_dirty()
    else:
        _mark_nids_dirty(nids)


# By hour: the parts of a long re-derivation must not delay live data.
_WINDOWS_OF_NIDS = """
INSERT INTO ingest_dirtytrace (server_id, start, "end", has_rows)
SELECT server_id, min(start), max(start) + interval '9.999999 s', true
FROM telemetry_rpcwindow w
WHERE nid_id = ANY(%s)
GROUP BY server_id, date_trunc('hour', start)
HAVING NOT EXISTS (
    SELECT FROM ingest_dirtytrace d
    WHERE d.server_id = w.server_id AND d.start <= min(w.start)
        AND d."end" >= max(w.start) + interval '9.999999 s'
)
"""


def _mark_nids_dirty(nids: Collection[int]) -> None:
    """Mark the hours of each server in which it has RPCs of some NIDs."""
    with connection.cursor() as cursor:
        cursor.execute(_WINDOWS_OF_NIDS, [sorted(nids)])


def mark_all_dirty() -> None:
    """Mark all derivable rows as dirty, each once."""
    _mark_traces_dirty()
    DirtyReads.objects.filter(has_rows=True).delete()
    DirtyReads.objects.bulk_create(
        DirtyReads(target_id=row["source_id"], start=row["first"], end=row["last"], has_rows=True)
        for row in Coverage.objects.filter(source=Coverage.Source.JOB_STATS, end=F("start"))
        .values("source_id")
        .annotate(first=Min("start"), last=Max("end"))
    )
    dropped = retention.dropped(_DELTA_LEVELS, *retention.ALWAYS)
    batches = Segment.objects.filter(
        batch__source__format__in=formats.names(tables.JOB_COUNTERS)
    ).exclude(pk__in=DirtyDeltas.objects.values("segment"))
    DirtyDeltas.objects.bulk_create(
        DirtyDeltas(
            segment=segment,
            filesystem=segment.batch.source.scope_filesystem,
            start=segment.start,
            end=segment.end,
            has_rows=True,
        )
        for segment in batches.select_related(
            "batch__source__server__filesystem", "batch__source__filesystem"
        )
        if segment.start
        and segment.end
        and not any(part.start <= segment.end and part.end > segment.start for part in dropped)
    )


def _mark_traces_dirty() -> None:
    dropped = retention.dropped(_RPC_LEVELS, *retention.ALWAYS)
    DirtyTrace.objects.filter(has_rows=True).delete()  # parts of the following ranges
    DirtyTrace.objects.bulk_create(
        DirtyTrace(
            server_id=trace.source_id, start=part.start, end=part.end - _MOMENT, has_rows=True
        )
        for trace in Coverage.objects.filter(source=Coverage.Source.RPC_TRACE)
        for part in coverage.gaps(dropped, trace.start, trace.end + _MOMENT)
    )


def _attribute_traces(dirty: list[DirtyTrace]) -> set[int]:
    """Attribute the windows of servers; return the jobs whose windows may have changed."""
    spans: dict[int, list[_Span]] = defaultdict(list)
    for row in dirty:
        spans[row.server_id].append(_Span(row.start, row.end))
    stale: set[int] = set()
    for server in Server.objects.filter(pk__in=spans):
        for span in _merged(map(_in_windows, spans[server.pk])):
            windows = AttributedRpc.objects.between(span.start, span.end).filter(
                server_id=server.pk
            )
            stale |= _jobs_of(windows)
            _attribute_server(server.pk, span.start, span.end)
            stale |= _jobs_of(windows)
        for span in spans[server.pk]:
            stale |= running(server.filesystem_id, span.start, span.end)
    return stale


def _attribute_server(server_id: int, start: datetime, end: datetime) -> None:
    """Attribute the windows of a server where all source rows are retained."""
    parts = retention.retained(_RPC_LEVELS, start, end)
    for part in parts:
        rpcs.attribute_server(server_id, *part)
        rpcs.await_records(server_id, *part)
        seconds.attribute_server(server_id, *part)
        rollups.mark_server_dirty(server_id, *part)
    LateRows.objects.bulk_create(
        LateRows(server_id=server_id, start=gap.start, end=gap.end)
        for gap in coverage.gaps(parts, start, end)
    )


def _attribute_reads(dirty: Sequence[DirtyReads], between: Sequence[_Span]) -> set[int]:
    """Derive the windows around reads; return the jobs whose windows may have changed.

    Each dirty interval comes with its span, from the read before it to the read after it.
    """
    if not dirty:
        return set()
    spans: dict[tuple[int, int], list[_Span]] = defaultdict(list)
    targets = Target.objects.in_bulk({row.target_id for row in dirty})
    for row, span in zip(dirty, between, strict=True):
        target = targets[row.target_id]
        folded_target = target.pk if target.kind == Target.Kind.MDT else 0
        spans[target.filesystem_id, folded_target].append(span)
    stale: set[int] = set()
    for (filesystem, folded_target), dirty_spans in spans.items():
        folded = (
            [folded_target]
            if folded_target
            else list(
                Target.objects.filter(filesystem=filesystem, kind=Target.Kind.OST).values_list(
                    "pk", flat=True
                )
            )
        )
        for span in _merged(dirty_spans):
            windows = IoWindow.objects.filter(
                filesystem_id=filesystem,
                target_id=folded_target,
                start__gte=span.start,
                end__lte=span.end,
            )
            stale |= _jobs_of(windows)
            for start, end in _derivable(span):
                reads.derive(filesystem, folded, folded_target, start, end)
                rollups.mark_target_dirty(filesystem, folded_target, start, end + _MOMENT)
                if folded_target:
                    impact_marks.mark_targets([folded_target], start, end)
            stale |= _jobs_of(windows) | running(filesystem, span.start, span.end)
    dropped = retention.dropped(
        _IO_LEVELS, min(span.start for span in between), max(row.end for row in dirty) + _MOMENT
    )
    LateRows.objects.bulk_create(
        LateRows(target_id=row.target_id, start=row.start, end=row.end)
        for row, span in zip(dirty, between, strict=True)
        if any(part.start <= row.end and part.end > span.start for part in dropped)
    )
    return stale


def _derivable(span: _Span) -> list[Interval]:
    """Return the parts of a span, from read to read, whose snapshots are all retained."""
    return [
        Interval(start, end if end == span.end else end - _MOMENT)
        for start, end in retention.retained(_IO_LEVELS, span.start, span.end)
    ]


def _attribute_deltas(dirty: DirtyDeltas) -> set[int]:
    """Derive the windows of a batch of differences; return the jobs that may have changed."""
    if not retention.is_retained(_DELTA_LEVELS, dirty.start, dirty.end):
        LateRows.objects.create(segment_id=dirty.segment_id, start=dirty.start, end=dirty.end)
        return set()
    windows = IoWindow.objects.filter(segment_id=dirty.segment_id)
    stale = _jobs_of(windows)
    deltas.derive(dirty.segment_id, dirty.start, dirty.end)
    # Of raw rows: a window whose operations were all counted before has been deleted.
    extents = (
        JobDelta.objects.filter(segment_id=dirty.segment_id, end__range=(dirty.start, dirty.end))
        .values("target_id")
        .annotate(first=Min("start"), last=Max("start"))
    )
    for target in extents:
        rollups.mark_target_dirty(
            dirty.filesystem_id, target["target_id"], target["first"], target["last"] + _MOMENT
        )
        if target["target_id"]:
            impact_marks.mark_targets([target["target_id"]], dirty.start, dirty.end)
    return stale | _jobs_of(windows) | running(dirty.filesystem_id, dirty.start, dirty.end)


def _attribute_exports(dirty: list[DirtyExports]) -> set[int]:
    """Fold hosts whose jobs were recorded while their windows were loaded.

    Return the jobs whose counters the windows may contradict.
    """
    stale: set[int] = set()
    if dirty:
        hosts.fold_segments(
            {row.segment_id for row in dirty},
            min(row.start for row in dirty),
            max(row.end for row in dirty),
        )
    for row in dirty:
        targets = row.segment.targets.values_list("pk", flat=True)
        impact_marks.mark_targets(targets, row.start, row.end)
        stale |= running(row.filesystem_id, row.start, row.end)
    return stale


def _attribute_jobs(dirty: list[DirtyJob]) -> set[int]:
    """Attribute the operations of jobs; return the jobs whose windows may have changed."""
    if not dirty:
        return set()
    job_ids = {row.job_id for row in dirty}
    first, last = min(row.start for row in dirty), max(row.end for row in dirty)
    impact_marks.mark_attribution(hosts.fold_jobs(job_ids, first, last))
    namesakes, source_job_ids = with_namesakes(job_ids)
    io_windows = IoWindow.objects.filter(source_job_id__in=source_job_ids)
    stale = namesakes | _jobs_of(io_windows)
    impact_marks.mark_attribution(reads.reattribute(source_job_ids))
    rollups.mark_source_jobs_dirty(source_job_ids)
    stale |= _jobs_of(io_windows)

    margin_before, margin_after = (
        (STARTS_WITHIN, ENDED_WITHIN) if source_job_ids else (timedelta(0), LEFT_OVER)
    )
    for span in _merged(
        _Span(row.start - margin_before, row.end + margin_after, {row.job_id}, {*row.node_ids})
        for row in dirty
    ):
        traced = Coverage.objects.filter(
            source=Coverage.Source.RPC_TRACE, start__lt=span.end, end__gte=span.start
        )
        if traced.exists():
            stale |= _attribute_span(span, namesakes, source_job_ids)
    return stale


def _attribute_span(span: _Span, namesakes: set[int], source_job_ids: set[int]) -> set[int]:
    """Attribute the RPCs of a span's jobs and of jobs on the same nodes; return all these jobs."""
    start, end = floor_to_window(span.start), floor_to_window(span.end) + _WINDOW
    nodes = span.node_ids.union(
        Allocation.objects.filter(job__in=span.job_ids).values_list("node_id", flat=True)
    )
    sharing = set(
        Job.objects.overlapping(start, end)
        .filter(allocations__node__in=nodes)
        .values_list("pk", flat=True)
    )
    jobs = span.job_ids | sharing
    on_nodes = Nid.objects.filter(Q(node__in=nodes) | Q(node__allocations__job__in=sharing))
    nids = set(on_nodes.values_list("pk", flat=True))
    claiming = _claiming(nids, start, end)
    namesakes, claimed_by = with_namesakes(namesakes | named_by(claiming))
    source_job_ids = source_job_ids | claiming | claimed_by
    contradicting = AttributedRpc.objects.between(start, end).filter(
        source_job_id__in=source_job_ids, kind=Principal.JOB
    )
    jobs_before = _jobs_of(contradicting)
    parts = retention.retained(_RPC_LEVELS, start, end)
    for part in parts:
        rpcs.attribute_jobs(
            job_ids=jobs,
            nids=nids,
            namesakes=namesakes,
            source_job_ids=source_job_ids,
            start=part.start,
            end=part.end,
        )
        seconds.attribute_all(*part)
        rollups.mark_principals_dirty(jobs | namesakes, nids, source_job_ids, *part)
    if not parts:  # (dropped rows of a running job were attributed before)
        LateRows.objects.bulk_create(
            LateRows(job_id=job_id, start=start, end=end) for job_id in span.job_ids
        )
    return jobs | namesakes | jobs_before | _jobs_of(contradicting)


def _claiming(nids: set[int], start: datetime, end: datetime) -> set[int]:
    """Return the job ids in the RPCs of NIDs that claim a job."""
    in_windows = RpcWindow.objects.between(start, end).filter(nid_id__in=nids)
    claims = SourceJobId.objects.exclude(batch_id="", launch="").filter(
        pk__in=in_windows.exclude(source_job_id=0).values("source_job_id")
    )
    return set(claims.values_list("pk", flat=True))


@dataclass
class _Span:
    """An interval with the jobs and nodes to attribute in it."""

    start: datetime
    end: datetime
    job_ids: set[int] = field(default_factory=set)
    node_ids: set[int] = field(default_factory=set)


def _in_windows(span: _Span) -> _Span:
    """Widen a span to window boundaries."""
    return _Span(floor_to_window(span.start), floor_to_window(span.end) + _WINDOW)


def _merged(spans: Iterable[_Span]) -> list[_Span]:
    """Join spans that overlap or touch."""
    merged: list[_Span] = []
    for span in sorted(spans, key=lambda span: span.start):
        if merged and span.start <= merged[-1].end:
            last = merged[-1]
            last.end = max(last.end, span.end)
            last.job_ids |= span.job_ids
            last.node_ids |= span.node_ids
        else:
            merged.append(span)
    return merged


def running(filesystem_id: int, first: datetime, last: datetime) -> set[int]:
    """Return the jobs that may have used a filesystem from `first` to `last`.

    Their covered time changes, even for jobs without operations.
    """
    jobs = Job.objects.filter(cluster__filesystems=filesystem_id)
    return set(jobs.overlapping(first, last + _MOMENT).values_list("pk", flat=True))


def _jobs_of(windows: models.QuerySet[models.Model]) -> set[int]:
    return set(windows.exclude(job_id=0).values_list("job_id", flat=True).distinct())
