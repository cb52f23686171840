"""What every format's loader needs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from collectors.lustre.rpc_repeats import RepeatedRecords
from collectors.lustre.targets import folded
from ioportal.ingest.loading import Refused
from ioportal.ingest.models import Segment, TouchedReads, TouchedTrace
from ioportal.telemetry.models import (
    Coverage,
    JobSnapshot,
    RequestWindow,
    RpcWindow,
    ServiceSnapshot,
    TargetSnapshot,
    floor_to_window,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from collectors.parsed import Parsed

_Thing = TypeVar("_Thing")

_MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True)
class Command:
    """What one command asks of all its texts."""

    replace: bool = False
    register_targets: bool = False  # those that are not registered, by their names
    columns: Sequence[str] | None = None  # of an sacct text without a header
    seen: RepeatedRecords = field(default_factory=RepeatedRecords)

    def afresh(self) -> Command:
        """Return the same command with nothing seen yet."""
        return replace(self, seen=RepeatedRecords())


def needed(thing: _Thing | None, what: str) -> _Thing:
    """Return `thing`, which a format cannot do without."""
    if thing is None:
        raise Refused(f"Give {what}.")
    return thing


def unregistered(what: str, target_names: Collection[str], remedy: str) -> Refused:
    """Return the refusal of a text or batch with targets that are not registered."""
    count = len(target_names)
    are = "target is" if count == 1 else "targets are"
    return Refused(f"{what}: {count:,} {are} not registered: {folded(target_names)}. {remedy}")


def segment_of(coverage: Coverage) -> Segment:
    """Return the segment that brought some coverage, or the first of those that did."""
    return Segment.objects.get(pk=coverage.segment_id)


def with_repeats(parts: Iterator[Parsed], seen: RepeatedRecords) -> Iterator[tuple[Parsed, int]]:
    """Yield parts, each with how many records it lacks because another text has them."""
    while True:
        before = seen.dropped
        parsed = next(parts, None)
        if parsed is None:
            return
        yield parsed, seen.dropped - before


def overlap(segment: Segment, other: Segment, of: str) -> Refused:
    """Return the refusal of a text or batch whose records another one may hold already."""
    clash = (
        f"{segment.name} overlaps {other.name} of {of}, loaded {other.loaded_at:%Y-%m-%d %H:%M} "
        f"UTC with records from {other.start} to {other.end}. Nothing was loaded."
    )
    if segment.is_batch or other.is_batch:
        return Refused(f"{clash} What an agent sends, or sent, takes no other's place.")
    return Refused(
        f"{clash} Give both files in one command with --replace: records that both have are then "
        "loaded once."
    )


def discard(segment: Segment) -> None:
    """Drop a segment, its raw rows and its coverage; what was derived from them is made anew."""
    coverage = Coverage.objects.filter(segment_id=segment.pk)
    covered = list(coverage)
    coverage.delete()
    if segment.start is None or segment.end is None:
        pass
    elif segment.format == Segment.Format.RPCTRACE:
        RpcWindow.objects.between(floor_to_window(segment.start), segment.end + _MOMENT).filter(
            segment_id=segment.pk
        ).delete()
        TouchedTrace.objects.bulk_create(
            TouchedTrace(server_id=extent.source_id, start=extent.start, end=extent.end)
            for extent in covered
        )
    elif segment.format == Segment.Format.REQ_HISTORY:
        windows = RequestWindow.objects.between(
            floor_to_window(segment.start), segment.end + _MOMENT
        )
        windows.filter(segment_id=segment.pk).delete()
    elif segment.format == Segment.Format.MDS_STATS:
        ServiceSnapshot.objects.filter(segment_id=segment.pk, taken_at=segment.start).delete()
    else:
        for snapshots in (JobSnapshot, TargetSnapshot):
            snapshots.objects.filter(segment_id=segment.pk, taken_at=segment.start).delete()
        TouchedReads.objects.bulk_create(
            TouchedReads(target_id=read.source_id, start=read.start, end=read.end)
            for read in covered
        )
    segment.delete()
