"""The charging stage: claims touched intervals and derives their rows anew.

One charger runs at a time (a lock until its transaction ends), so that two cannot insert the same
rows from what each saw of the other's half-done work. Loading goes on beside it: what commits while
a charge runs has left a touched interval of its own.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any

from django.db import connection, models, transaction
from django.db.models import Exists, F, Max, Min, OuterRef, Q

from collectors import formats, tables
from ioportal.ingest.attribution import deltas, reads, rpcs
from ioportal.ingest.attribution.job_ids import ENDED_WITHIN, STARTS_WITHIN, with_namesakes
from ioportal.ingest.models import (
    Segment,
    TooLate,
    TouchedDeltas,
    TouchedJob,
    TouchedReads,
    TouchedTrace,
)
from ioportal.jobs.models import Allocation, Job, StaleEvidence, StaleStatistics
from ioportal.site.models import Nid, Server, Target
from ioportal.telemetry import coverage, levels, retention, rollups
from ioportal.telemetry.coverage import Interval
from ioportal.telemetry.models import ChargedRpc, Coverage, IoWindow, floor_to_window

if TYPE_CHECKING:
    from collections.abc import Iterable

_ATTRIBUTION_LOCK = 7_302  # any number that no other advisory lock uses
_WINDOW = timedelta(seconds=10)
# What is to be there where something is charged: raw rows, and those that are made anew.
_RPC_LEVELS = (levels.RPC_WINDOWS, levels.ATTRIBUTED_RPCS)
_IO_LEVELS = (levels.JOB_SNAPSHOTS, levels.IO_WINDOWS)
_DELTA_LEVELS = (levels.JOB_DELTAS, levels.IO_WINDOWS)
_MOMENT = timedelta(microseconds=1)


def attribute_pending(limit: int = 500) -> int:
    """Claim up to `limit` touched intervals of each kind and derive their rows; return how many.

    The caller goes on until it is 0. Safe to run twice and beside itself.
    """
    with transaction.atomic():
        lock()
        traces = TouchedTrace.objects.claim(limit)
        polled = TouchedReads.objects.claim(limit)
        differences = TouchedDeltas.objects.claim(limit)
        jobs = TouchedJob.objects.claim(limit)
        changed = (  # jobs, and since when: one that ended has nobody else's whole run judged again
            (_attribute_traces(traces), [row.start for row in traces]),
            (_attribute_reads(polled), [_between_reads(row).start for row in polled]),
            (
                set(chain.from_iterable(map(_attribute_deltas, differences))),
                [row.start for row in differences],
            ),
            (_attribute_jobs(jobs), [row.start - STARTS_WITHIN for row in jobs]),
        )
        StaleStatistics.objects.ask_for(set(chain.from_iterable(stale for stale, _ in changed)))
        for stale, begun in changed:
            if stale:
                StaleEvidence.objects.ask_for(stale, floor_to_window(min(begun)))
        return len(traces) + len(polled) + len(differences) + len(jobs)


def lock() -> None:
    """Wait until nobody charges, and let nobody until this transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_ATTRIBUTION_LOCK])


def mark_all_dirty(**_: Any) -> None:
    """Ask for all derived rows anew that can be: the registered site changed."""
    traces = Coverage.objects.filter(source=Coverage.Source.RPC_TRACE)
    gone = retention.dropped(_RPC_LEVELS, *retention.ALWAYS)
    TouchedTrace.objects.bulk_create(
        TouchedTrace(
            server_id=trace.source_id, start=part.start, end=part.end - _MOMENT, again=True
        )
        for trace in traces
        for part in coverage.gaps(gone, trace.start, trace.end + _MOMENT)
    )
    TouchedReads.objects.bulk_create(
        TouchedReads(target_id=row["source_id"], start=row["first"], end=row["last"], again=True)
        for row in Coverage.objects.filter(source=Coverage.Source.JOB_STATS, end=F("start"))
        .values("source_id")
        .annotate(first=Min("start"), last=Max("end"))
    )
    gone = retention.dropped(_DELTA_LEVELS, *retention.ALWAYS)
    TouchedDeltas.objects.bulk_create(
        TouchedDeltas(
            segment=segment,
            filesystem=segment.batch.source.scope_filesystem,
            start=segment.start,
            end=segment.end,
            again=True,
        )
        for segment in Segment.objects.filter(
            batch__source__format__in=formats.names(tables.JOB_COUNTERS)
        ).select_related("batch__source__server__filesystem", "batch__source__filesystem")
        if segment.start
        and segment.end
        and not any(one.start <= segment.end and one.end > segment.start for one in gone)
    )


def _attribute_traces(touched: list[TouchedTrace]) -> set[int]:
    """Charge servers' windows; return the jobs of which more is known, or less, than before."""
    spans: dict[int, list[_Span]] = defaultdict(list)
    for row in touched:
        spans[row.server_id].append(_Span(row.start, row.end))
    stale: set[int] = set()
    for server in Server.objects.filter(pk__in=spans):
        for span in _merged(map(_in_windows, spans[server.pk])):
            windows = ChargedRpc.objects.between(span.start, span.end).filter(server_id=server.pk)
            stale |= _jobs_of(windows)
            _attribute_server(server.pk, span.start, span.end)
            stale |= _jobs_of(windows)
        for span in spans[server.pk]:
            stale |= _running(server.filesystem_id, span.start, span.end)
    return stale


def _attribute_server(server_id: int, start: datetime, end: datetime) -> None:
    """Charge a server's windows where all is there that they follow from."""
    parts = retention.retained(_RPC_LEVELS, start, end)
    for part in parts:
        rpcs.attribute_server(server_id, *part)
        rollups.mark_server_dirty(server_id, *part)
    TooLate.objects.bulk_create(
        TooLate(server_id=server_id, start=gone.start, end=gone.end)
        for gone in coverage.gaps(parts, start, end)
    )


def _attribute_reads(touched: list[TouchedReads]) -> set[int]:
    """Derive the windows around some reads; return the jobs of which more or less is known."""
    spans: dict[tuple[int, int], list[_Span]] = defaultdict(list)
    targets = Target.objects.in_bulk({row.target_id for row in touched})
    for row in touched:
        target = targets[row.target_id]
        folded_target = target.pk if target.kind == Target.Kind.MDT else 0
        spans[target.filesystem_id, folded_target].append(_between_reads(row))
    stale: set[int] = set()
    for (filesystem, folded_target), wanted in spans.items():
        together = (
            [folded_target]
            if folded_target
            else list(
                Target.objects.filter(filesystem=filesystem, kind=Target.Kind.OST).values_list(
                    "pk", flat=True
                )
            )
        )
        for span in _merged(wanted):
            windows = IoWindow.objects.filter(
                filesystem_id=filesystem,
                target_id=folded_target,
                start__gte=span.start,
                end__lte=span.end,
            )
            stale |= _jobs_of(windows)
            for start, end in _derivable(span):
                reads.derive(filesystem, together, folded_target, start, end)
                rollups.mark_target_dirty(filesystem, folded_target, start, end + _MOMENT)
            stale |= _jobs_of(windows) | _running(filesystem, span.start, span.end)
    TooLate.objects.bulk_create(
        TooLate(target_id=row.target_id, start=row.start, end=row.end)
        for row in touched
        if not retention.is_retained(_IO_LEVELS, _between_reads(row).start, row.end)
    )
    return stale


def _derivable(span: _Span) -> list[Interval]:
    """Return the parts of a span, from read to read, of which all snapshots are there."""
    return [
        Interval(start, end if end == span.end else end - _MOMENT)
        for start, end in retention.retained(_IO_LEVELS, span.start, span.end)
    ]


def _attribute_deltas(touched: TouchedDeltas) -> set[int]:
    """Derive the windows of a batch of differences; return the jobs of which more is known."""
    if not retention.is_retained(_DELTA_LEVELS, touched.start, touched.end):
        TooLate.objects.create(segment_id=touched.segment_id, start=touched.start, end=touched.end)
        return set()
    windows = IoWindow.objects.filter(segment_id=touched.segment_id)
    stale = _jobs_of(windows)
    deltas.derive(touched.segment_id, touched.start, touched.end)
    begun = windows.values("target_id").annotate(first=Min("start"), last=Max("start"))
    for target in begun:
        rollups.mark_target_dirty(
            touched.filesystem_id, target["target_id"], target["first"], target["last"] + _MOMENT
        )
    return stale | _jobs_of(windows) | _running(touched.filesystem_id, touched.start, touched.end)


def _attribute_jobs(touched: list[TouchedJob]) -> set[int]:
    """Charge what some jobs may have done; return the jobs whose windows may have changed."""
    job_ids = {row.job_id for row in touched}
    namesakes, source_job_ids = with_namesakes(job_ids)
    io_windows = IoWindow.objects.filter(source_job_id__in=source_job_ids)
    stale = namesakes | _jobs_of(io_windows)
    reads.reattribute(source_job_ids)
    rollups.mark_source_jobs_dirty(source_job_ids)
    stale |= _jobs_of(io_windows)

    margin_before, margin_after = (
        (STARTS_WITHIN, ENDED_WITHIN) if source_job_ids else (timedelta(0),) * 2
    )
    for span in _merged(
        _Span(row.start - margin_before, row.end + margin_after, {row.job_id}, {*row.node_ids})
        for row in touched
    ):
        traced = Coverage.objects.filter(
            source=Coverage.Source.RPC_TRACE, start__lt=span.end, end__gte=span.start
        )
        if traced.exists():
            stale |= _attribute_span(span, namesakes, source_job_ids)
    return stale


def _attribute_span(span: _Span, namesakes: set[int], source_job_ids: set[int]) -> set[int]:
    """Charge the RPCs of a span's jobs and of all that share their nodes; return these jobs."""
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
    nids = Nid.objects.filter(
        Q(node__in=nodes) | Q(node__allocations__job__in=sharing)
    ).values_list("pk", flat=True)
    parts = retention.retained(_RPC_LEVELS, start, end)
    for part in parts:
        rpcs.attribute_jobs(
            job_ids=jobs,
            nids=set(nids),
            namesakes=namesakes,
            source_job_ids=source_job_ids,
            start=part.start,
            end=part.end,
        )
        rollups.mark_principals_dirty(jobs | namesakes, set(nids), source_job_ids, *part)
    if not parts:  # (of a job that runs on, what is gone had been charged)
        TooLate.objects.bulk_create(
            TooLate(job_id=job_id, start=start, end=end) for job_id in span.job_ids
        )
    return jobs


@dataclass
class _Span:
    """An interval, and what is to be charged in it."""

    start: datetime
    end: datetime
    job_ids: set[int] = field(default_factory=set)
    node_ids: set[int] = field(default_factory=set)


def _in_windows(span: _Span) -> _Span:
    """Widen a span to the edges of its windows."""
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


def _between_reads(touched: TouchedReads) -> _Span:
    """Widen an interval to the reads before and after it, between which windows may lie already.

    None do at a read that is still pending: a window that was derived before both came spans it.
    """
    pending = TouchedReads.objects.filter(
        target_id=OuterRef("source_id"), start__lte=OuterRef("start"), end__gte=OuterRef("start")
    )
    polls = Coverage.objects.filter(
        ~Exists(pending),
        source=Coverage.Source.JOB_STATS,
        source_id=touched.target_id,
        end=F("start"),
    )
    before = polls.filter(start__lt=touched.start).order_by("-start").first()
    after = polls.filter(start__gt=touched.end).order_by("start").first()
    return _Span(
        before.start if before else touched.start - _MOMENT, after.start if after else touched.end
    )


def _running(filesystem_id: int, first: datetime, last: datetime) -> set[int]:
    """Return the jobs that may have used a filesystem between two moments: they are observed then.

    One that did nothing is observed, too; and one that runs is known up to the last record.
    """
    jobs = Job.objects.filter(cluster__filesystems=filesystem_id)
    return set(jobs.overlapping(first, last + _MOMENT).values_list("pk", flat=True))


def _jobs_of(windows: models.QuerySet[models.Model]) -> set[int]:
    return set(windows.exclude(job_id=0).values_list("job_id", flat=True).distinct())
