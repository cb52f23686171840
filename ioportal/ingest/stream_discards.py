"""Discarding a stream: staff remove what an agent with a wrong or stolen token sent.

Its claims of coverage are deleted immediately, so that refused batches of the right agent are
accepted, and claims that gave way to it return. Its rows are deleted by a stage, in groups of
batches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import structlog
from django.db import transaction
from django.db.models import Exists, Max, Min, OuterRef
from django.utils import timezone

from collectors import tables
from collectors.formats import BY_NAME
from ioportal.ingest import attribution_stage, impact_marks, stream_coverage
from ioportal.ingest.attribution import deltas
from ioportal.ingest.loaders.common import delete_seconds
from ioportal.ingest.models import (
    Batch,
    DirtyReads,
    DirtyTrace,
    Segment,
    SegmentPart,
    Sender,
    Stream,
)
from ioportal.jobs.models import DirtyEvidence, DirtyStatistics
from ioportal.site.models import Server, Target
from ioportal.telemetry import rollups
from ioportal.telemetry.models import (
    DirtyImpact,
    HostWindow,
    IoWindow,
    JobDelta,
    RequestWindow,
    RpcWindow,
    ServiceSnapshot,
    TargetDelta,
    floor_to_window,
)

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.models import QuerySet

    from collectors.tables import Table

log = structlog.get_logger()

# Rows by table, and the name of their time.
_ROWS: Final[dict[Table, tuple[Any, str]]] = {
    tables.RPC_WINDOWS: (RpcWindow, "start"),
    tables.REQUEST_WINDOWS: (RequestWindow, "start"),
    tables.SERVICE_COUNTERS: (ServiceSnapshot, "taken_at"),
    tables.JOB_DELTAS: (JobDelta, "end"),
    tables.TARGET_DELTAS: (TargetDelta, "end"),
    tables.EXPORT_DELTAS: (HostWindow, "end"),
}


class Invalid(Exception):  # noqa: N818  (a decision about the request)
    """The stream cannot be discarded; the message names the remedy."""


def is_discardable(stream: Stream) -> bool:
    """Return whether the rows of a stream are measurements, without records of jobs."""
    return BY_NAME[stream.source.format].batch_table in _ROWS


@transaction.atomic
def discard(stream: Stream, by: str, reason: str) -> None:
    """Refuse further batches of a stream, remove its coverage, and request its deletion.

    Raises:
        Invalid: it was discarded before, or contains records of jobs.
    """
    if not is_discardable(stream):
        raise Invalid(
            f"{stream.source} sends records of jobs, which later records correct: load the right "
            "ones with manage.py ingest."
        )
    # Locked in the order of `senders`: first the sender, then its stream.
    Sender.objects.filter(stream=stream).update(stream=None)
    changed = Stream.objects.filter(pk=stream.pk, discarded_at=None).update(
        discarded_at=timezone.now(), discarded_by=by, discard_reason=reason
    )
    if not changed:
        raise Invalid(f"The stream {stream.stream} was discarded before.")
    segments = _segments(stream)
    # Locked until the commit, as by loads: no other stream takes its coverage meanwhile.
    if server := stream.source.server:
        Server.objects.select_for_update().get(pk=server.pk)
    targets = Target.objects.filter(pk__in=segments.values("targets"))
    list(targets.select_for_update().order_by("pk"))
    stream_coverage.remove(segments)
    log.warning(
        "stream_discarded", source=stream.source.name, stream=str(stream.stream), by=by,
        reason=reason,
    )  # fmt: skip


def delete_next(limit: int) -> int:
    """Delete up to `limit` batches of a discarded stream with their rows; return how many."""
    batches = Batch.objects.filter(source=OuterRef("source"), stream=OuterRef("stream"))
    discarded = Stream.objects.exclude(discarded_at=None).filter(Exists(batches))
    stream = discarded.select_related("source").order_by("discarded_at").first()
    if stream is None:
        return 0
    with transaction.atomic():
        attribution_stage.lock()
        first = list(_segments(stream).order_by("pk").values_list("pk", flat=True)[:limit])
        segments = Segment.objects.filter(pk__in=first)
        extent = segments.aggregate(start=Min("start"), end=Max("end"))
        if extent["start"]:
            _delete_rows(stream, segments, extent["start"], extent["end"])
        stream_coverage.remove(segments)  # of batches that an earlier version stored late
        segments.delete()
        return len(first)


def _segments(stream: Stream) -> QuerySet[Segment]:
    return Segment.objects.filter(batch__source=stream.source_id, batch__stream=stream.stream)


def _delete_rows(
    stream: Stream, segments: QuerySet[Segment], start: datetime, end: datetime
) -> None:
    """Delete the rows of segments; request all that depends on them again."""
    table = BY_NAME[stream.source.format].batch_table
    model, time = _ROWS[table]
    span = {f"{time}__gte": floor_to_window(start), f"{time}__lte": end}
    keys = list(SegmentPart.keys_of(segment.pk for segment in segments))
    rows = model.objects.filter(segment_id__in=keys, **span)
    server = stream.source.server
    targets = set(segments.values_list("targets", flat=True)) - {None}
    stale: set[int] = set()
    if table is tables.JOB_DELTAS:
        stale = _delete_io_windows(keys, start, end)
    rows.delete()
    if table is tables.RPC_WINDOWS and server:
        delete_seconds(keys)
        DirtyTrace.objects.bulk_create(
            DirtyTrace(server=server, start=segment.start, end=segment.end, has_rows=True)
            for segment in segments
            if segment.start and segment.end
        )
    elif table is tables.SERVICE_COUNTERS and server:
        DirtyImpact.objects.create(server_id=server.pk, start=start, end=end)
    elif targets:
        if table is tables.JOB_DELTAS:
            deltas.request_first_polls(
                [DirtyReads(target_id=target, start=start, end=start) for target in targets]
            )
        impact_marks.mark_targets(targets, start, end)
        filesystems = Target.objects.filter(pk__in=targets).values_list("filesystem", flat=True)
        for filesystem in set(filesystems):
            stale |= attribution_stage.running(filesystem, start, end)
    if stale:
        DirtyStatistics.objects.mark(stale)
        DirtyEvidence.objects.mark(stale, start)


def _delete_io_windows(keys: list[int], start: datetime, end: datetime) -> set[int]:
    """Delete the windows of increments; return the jobs that had them."""
    windows = IoWindow.objects.filter(segment_id__in=keys, start__gte=start, start__lte=end)
    for changed in windows.values("filesystem_id", "target_id").annotate(
        first=Min("start"), last=Max("end")
    ):
        rollups.mark_target_dirty(
            changed["filesystem_id"], changed["target_id"], changed["first"], changed["last"]
        )
    stale = set(windows.exclude(job_id=0).values_list("job_id", flat=True).distinct())
    windows.delete()
    return stale
