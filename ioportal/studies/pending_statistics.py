"""Pending statistics of jobs: figures over these jobs are incomplete until they are computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ioportal.jobs.models import DirtyStatistics
from ioportal.studies.populations import BATCH_JOBS

if TYPE_CHECKING:
    from ioportal.studies.populations import JobKind


def pending_statistics(kind: JobKind, jobs: Any) -> int:
    """Return the number of ended jobs with outdated statistics. Running jobs always have such."""
    prefix = "" if kind is BATCH_JOBS else "batch_job__"
    pending = DirtyStatistics.objects.values("job_id")
    ended = jobs.filter(**{f"{prefix}pk__in": pending, f"{prefix}ended_at__isnull": False})
    return int(ended.order_by().count())
