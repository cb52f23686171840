"""Parts shared by the loaders."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from django.db.models import Max, Min
from django.db.models.functions import TruncHour

from collectors import tables
from collectors.lustre.targets import folded
from ioportal.ingest.loading import Refused
from ioportal.ingest.models import DirtyReads, DirtyTrace, Segment
from ioportal.telemetry.models import (
    Coverage,
    JobSnapshot,
    RequestWindow,
    RpcSecond,
    RpcWindow,
    ServiceSnapshot,
    TargetSnapshot,
    floor_to_window,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from collectors.lustre.rpc_repeats import RepeatedRecords
    from collectors.parsed import Parsed

_Thing = TypeVar("_Thing")

_MOMENT = timedelta(microseconds=1)


def needed(thing: _Thing | None, what: str) -> _Thing:
    """Return `thing`, which the format requires."""
    if thing is None:
        raise Refused(f"Give {what}.")
    return thing


def unregistered(what: str, target_names: Collection[str], remedy: str) -> Refused:
    """Return the refusal of a file or batch with unregistered targets."""
    count = len(target_names)
    are = "target is" if count == 1 else "targets are"
    return Refused(f"{what}: {count:,} {are} not registered: {folded(target_names)}. {remedy}")


def segment_of(coverage: Coverage) -> Segment:
    """Return the first segment of a coverage interval."""
    return Segment.objects.get(pk=coverage.segment_id)


def with_repeats(parts: Iterator[Parsed], seen: RepeatedRecords) -> Iterator[tuple[Parsed, int]]:
    """Yield parts, each with its number of records that another file contains."""
    while True:
        before = seen.dropped
        parsed = next(parts, None)
        if parsed is None:
            return
        yield parsed, seen.dropped - before


def overlap(segment: Segment, other: Segment, scope: str) -> Refused:
    """Return the refusal of a file or batch that may repeat stored records."""
    clash = (
        f"{segment.name} overlaps {other.name} of {scope}, loaded {other.loaded_at:%Y-%m-%d %H:%M} "
        f"UTC with records from {other.start} to {other.end}. Nothing was loaded."
    )
    if other.is_batch:
        return Refused(
            f"{clash} Batches of agents are never replaced. If the agent's data is wrong, discard "
            "its stream (Admin → Data → Streams)."
        )
    if segment.is_batch:
        return Refused(
            f"{clash} The stored records are from a file, which batches of agents do not replace. "
            "Load no files of times that an agent sends."
        )
    return Refused(
        f"{clash} Load both files in a single command with --replace: common records are then "
        "loaded once."
    )


def delete_seconds(segment_ids: Sequence[int]) -> None:
    """Delete the demand by second of segments, and request attribution of its windows again."""
    rows = RpcSecond.objects.filter(segment_id__in=segment_ids)
    hours = rows.values("server_id", hour=TruncHour("start"))  # there may be long pauses
    extents = hours.annotate(first=Min("start"), last=Max("start"))
    DirtyTrace.objects.bulk_create(
        DirtyTrace(server_id=extent["server_id"], start=extent["first"], end=extent["last"])
        for extent in extents
    )
    rows.delete()


def discard(segment: Segment) -> None:
    """Delete a segment with its raw rows and coverage; derived rows are recomputed."""
    coverage = Coverage.objects.filter(segment_id=segment.pk)
    covered = list(coverage)
    coverage.delete()
    if segment.start is None or segment.end is None:
        pass
    elif segment.table is tables.RPC_WINDOWS:
        RpcWindow.objects.between(floor_to_window(segment.start), segment.end + _MOMENT).filter(
            segment_id=segment.pk
        ).delete()
        delete_seconds([segment.pk])
        DirtyTrace.objects.bulk_create(
            DirtyTrace(server_id=extent.source_id, start=extent.start, end=extent.end)
            for extent in covered
        )
    elif segment.table is tables.REQUEST_WINDOWS:
        windows = RequestWindow.objects.between(
            floor_to_window(segment.start), segment.end + _MOMENT
        )
        windows.filter(segment_id=segment.pk).delete()
    elif segment.table is tables.SERVICE_COUNTERS:
        ServiceSnapshot.objects.filter(segment_id=segment.pk, taken_at=segment.start).delete()
    else:
        for snapshots in (JobSnapshot, TargetSnapshot):
            snapshots.objects.filter(segment_id=segment.pk, taken_at=segment.start).delete()
        DirtyReads.objects.bulk_create(
            DirtyReads(target_id=read.source_id, start=read.start, end=read.end) for read in covered
        )
    segment.delete()
