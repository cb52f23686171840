"""Pending statistics and evaluations of jobs: until then, figures and flags are incomplete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ioportal.jobs.models import DirtyEvidence, DirtyStatistics
from ioportal.jobs.populations import BATCH_JOBS

if TYPE_CHECKING:
    from ioportal.jobs.populations import JobKind


def pending_statistics(kind: JobKind, jobs: Any, *, flags: bool = True) -> int:
    """Return the number of ended jobs with outdated statistics. Running ones always have such.

    Args:
        kind: of the jobs.
        jobs: their QuerySet.
        flags: whether jobs with outdated flags count, too.
    """
    prefix = "" if kind is BATCH_JOBS else "batch_job__"
    pending = DirtyStatistics.objects.order_by().values("job_id")
    if flags:
        pending = pending.union(DirtyEvidence.objects.order_by().values("job_id"), all=True)
    ended = jobs.filter(**{f"{prefix}pk__in": pending, f"{prefix}ended_at__isnull": False})
    return int(ended.order_by().count())
