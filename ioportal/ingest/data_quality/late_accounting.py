"""Jobs whose accounting arrived after their telemetry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Count, Min

from ioportal.ingest.attribution.namesakes import ENDED_WITHIN, STARTS_WITHIN
from ioportal.ingest.models import Segment
from ioportal.telemetry.models import AttributedRpc, IoWindow

if TYPE_CHECKING:
    from datetime import datetime

    from ioportal.jobs.models import Job


@dataclass(frozen=True)
class LateAccounting:
    """Segments of a job that were loaded before its first record."""

    segments: int
    since: datetime  # when the first segment was loaded
    until: datetime  # when the first record was loaded


def for_job(job: Job) -> LateAccounting | None:
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
