"""Coverage of streams of batches, joined to one row per day and gap."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from typing import TYPE_CHECKING

from ioportal.ingest.models import Batch
from ioportal.telemetry.coverage import Interval
from ioportal.telemetry.models import Coverage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from django.db.models import QuerySet


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
