"""Coverage of streams of batches, joined to one row per day and gap."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from typing import TYPE_CHECKING, Any

from ioportal.ingest.models import Batch, DisplacedClaim, Segment, SegmentPart
from ioportal.telemetry import levels, retention
from ioportal.telemetry.coverage import Interval
from ioportal.telemetry.models import (
    Coverage,
    HostWindow,
    JobDelta,
    RpcWindow,
    TargetDelta,
    floor_to_window,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from django.db.models import QuerySet

FOLDED = 0  # the target id of all OSTs

# The rows whose intervals streams claim.
_ROWS: dict[Coverage.Source, tuple[levels.Level, Any]] = {
    Coverage.Source.RPC_TRACE: (levels.RPC_WINDOWS, RpcWindow),
    Coverage.Source.JOB_STATS: (levels.JOB_DELTAS, JobDelta),
    Coverage.Source.MD_STATS: (levels.TARGET_DELTAS, TargetDelta),
    Coverage.Source.EXPORTS: (levels.HOST_WINDOWS, HostWindow),
}


def from_other_streams(batch: Batch, kind: Coverage.Source, source_id: int) -> QuerySet[Coverage]:
    """Return the coverage of a server or target from other streams and from files."""
    return _coverage(kind, source_id).exclude(segment_id__in=_segments(batch))


def add(batch: Batch, kind: Coverage.Source, source_id: int, intervals: Iterable[Interval]) -> None:
    """Add intervals to the coverage of a batch's stream.

    Adjacent rows are joined, but no row spans more than a day (in UTC), so that a search for the
    rows around a time is limited to rows that start within a day before it.
    """
    for interval in intervals:
        for day in _days(interval):
            _join(batch, kind, source_id, day)


def give_way(other: Coverage, taken: Interval, by: Segment) -> bool:
    """Remove an interval from the coverage of another stream, unless it has rows in it.

    A claim without rows is no proof of an observation: rows of another stream refute it.

    Args:
        other: the claim of the other stream.
        taken: the interval.
        by: the segment that takes it; without rows it takes nothing.

    Returns:
        Whether it gave way; files never do.
    """
    batch = Batch.objects.filter(segment=other.segment_id).first()
    if not by.records or batch is None or _has_rows(batch, other, _common(other, taken)):
        return False
    other.delete()
    Coverage.objects.bulk_create(_displaced(other, taken, by.pk))
    return True


def remove(segments: QuerySet[Segment]) -> None:
    """Remove the coverage of segments of one stream.

    Claims that gave way to it are valid again, except where a third stream took the interval: they
    give way to that stream instead.
    """
    Coverage.objects.filter(segment_id__in=segments.values("pk")).delete()
    own = DisplacedClaim.objects.filter(segment__in=segments)
    losses = list(own)
    own.delete()
    taken = DisplacedClaim.objects.filter(taken_by__in=segments)
    for claim in taken:
        parts = [
            Coverage(
                source=claim.kind,
                source_id=claim.source_id,
                start=claim.start,
                end=claim.end,
                segment_id=claim.segment_id,
            )
        ]
        for loss in losses:
            if (loss.kind, loss.source_id) == (claim.kind, claim.source_id):
                interval = Interval(loss.start, loss.end)
                parts = [
                    rest for part in parts for rest in _displaced(part, interval, loss.taken_by_id)
                ]
        Coverage.objects.bulk_create(parts)
    taken.delete()


def _common(claim: Coverage, interval: Interval) -> Interval:
    return Interval(max(claim.start, interval.start), min(claim.end, interval.end))


def _displaced(claim: Coverage, taken: Interval, taken_by_id: int) -> list[Coverage]:
    """Store the part of a claim in a taken interval as displaced; return the rest of the claim."""
    common = _common(claim, taken)
    if common.end < common.start:
        return [claim]
    DisplacedClaim.objects.create(
        kind=claim.source,
        source_id=claim.source_id,
        start=common.start,
        end=common.end,
        segment_id=claim.segment_id,
        taken_by_id=taken_by_id,
    )
    return [
        Coverage(
            source=claim.source,
            source_id=claim.source_id,
            start=part.start,
            end=part.end,
            segment_id=claim.segment_id,
        )
        for part in (Interval(claim.start, common.start), Interval(common.end, claim.end))
        if part.end > part.start
    ]


def _has_rows(batch: Batch, claim: Coverage, part: Interval) -> bool:
    """Return whether the stream of a batch has rows in a part of a claim, or had some."""
    segments = Segment.objects.filter(
        pk__in=_segments(batch), records__gt=0, start__lte=part.end, end__gte=part.start
    )
    keys = list(SegmentPart.keys_of(segments.values_list("pk", flat=True)))
    if not keys:
        return False
    level, model = _ROWS[Coverage.Source(claim.source)]
    if not retention.is_retained((level,), part.start, part.end):
        return True
    rows = model.objects.filter(segment_id__in=keys)
    if model is RpcWindow:
        rows = rows.filter(
            start__range=(floor_to_window(part.start), part.end),
            first__lte=part.end,
            last__gte=part.start,
        )
    else:
        rows = rows.filter(
            target_id__in=(claim.source_id, FOLDED), start__lt=part.end, end__gt=part.start
        )
    return bool(rows.exists())


def _join(batch: Batch, kind: Coverage.Source, source_id: int, part: Interval) -> None:
    adjacent = list(
        _coverage(kind, source_id)
        .filter(
            start__gte=_midnight(part.start),
            start__lte=part.end,
            end__gte=part.start,
            segment_id__in=_segments(batch),
        )
        .order_by("start")
    )
    joined = Coverage(
        source=kind,
        source_id=source_id,
        start=part.start,
        end=max([part.end, *(row.end for row in adjacent)]),
        segment_id=batch.segment_id,
    )
    if adjacent and adjacent[0].start <= part.start:  # keeps the segment of its first batch
        joined.start, joined.segment_id = adjacent[0].start, adjacent[0].segment_id
    Coverage.objects.filter(pk__in=[row.pk for row in adjacent]).delete()
    joined.save()


def _coverage(kind: Coverage.Source, source_id: int) -> QuerySet[Coverage]:
    return Coverage.objects.filter(source=kind, source_id=source_id)


def _segments(batch: Batch) -> QuerySet[Batch, int]:
    """Return the segments of a batch's stream."""
    return Batch.objects.filter(source=batch.source_id, stream=batch.stream).values_list(
        "segment_id", flat=True
    )


def _days(interval: Interval) -> Iterator[Interval]:
    start = interval.start
    while (midnight := _midnight(start) + timedelta(days=1)) < interval.end:
        yield Interval(start, midnight)
        start = midnight
    yield Interval(start, interval.end)


def _midnight(moment: datetime) -> datetime:
    return datetime.combine(moment.date(), time(), moment.tzinfo)
