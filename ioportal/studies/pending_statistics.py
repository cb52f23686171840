"""Pending statistics and evaluations of jobs: until then, figures and flags are incomplete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ioportal.jobs.models import DirtyEvidence, DirtyStatistics
from ioportal.studies.populations import BATCH_JOBS

if TYPE_CHECKING:
    from ioportal.studies.populations import JobKind


def pending_statistics(kind: JobKind, jobs: Any) -> int:
    """Return the number of ended jobs with outdated statistics or flags. Running ones have such."""
    prefix = "" if kind is BATCH_JOBS else "batch_job__"
    statistics, evidence = (
        dirty.objects.order_by().values("job_id") for dirty in (DirtyStatistics, DirtyEvidence)
    )
    pending = statistics.union(evidence, all=True)
    ended = jobs.filter(**{f"{prefix}pk__in": pending, f"{prefix}ended_at__isnull": False})
    return int(ended.order_by().count())
