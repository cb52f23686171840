"""Jobs whose accounting came after what they did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Count, Min

from ioportal.ingest.attribution.job_ids import ENDED_WITHIN, STARTS_WITHIN
from ioportal.ingest.models import Segment
from ioportal.telemetry.models import ChargedRpc, IoWindow

if TYPE_CHECKING:
    from datetime import datetime

    from ioportal.jobs.models import Job


@dataclass(frozen=True)
class LateAccounting:
    """What had come before anything explained it: until then it was charged to no job."""

    segments: int
    since: datetime  # when the first of them was loaded
    until: datetime  # when the first record of the job was


def for_job(job: Job) -> LateAccounting | None:
    """Return what was loaded of a job before its first record; None: nothing, or no record."""
    recorded = job.records.aggregate(at=Min("segment__loaded_at"))["at"]
    if recorded is None or job.started_at is None or job.known_until is None:
        return None
    start, end = job.started_at - STARTS_WITHIN, job.known_until + ENDED_WITHIN
    charged = [
        windows.objects.between(start, end).for_job(job.pk).values("segment_id").distinct()
        for windows in (ChargedRpc, IoWindow)
    ]
    before = Segment.objects.filter(pk__in=charged[0].union(charged[1]), loaded_at__lt=recorded)
    found = before.aggregate(segments=Count("pk"), since=Min("loaded_at"))
    return LateAccounting(**found, until=recorded) if found["segments"] else None
