"""The page of one PanDA job."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.shortcuts import get_object_or_404

from ioportal.jobs import job_facts, panda_jobs
from ioportal.jobs.models import Job, JobStatistics, WorkloadJob
from ioportal.load.job_exports import PANDA_COLUMNS
from ioportal.metrics import PANDA_METRICS

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from ioportal.jobs.panda_jobs import PandaSummary
    from ioportal.metrics import Metric


class PandaJobPage:
    """A PanDA job, and the figures of the batch job that it ran inside."""

    def __init__(self, user: User, cluster: str, panda_id: int) -> None:
        visible = WorkloadJob.objects.visible_to(user).select_related("cluster")
        self.panda_job: WorkloadJob = get_object_or_404(
            visible, cluster__name=cluster, panda_id=panda_id
        )
        self.holders = list(
            Job.objects.visible_to(user)
            .filter(workload_jobs=self.panda_job)
            .select_related("cluster", "statistics")
            .order_by("batch_id", "array_index")
        )

    @property
    def job(self) -> Job | None:
        """The batch job; None if unknown or ambiguous."""
        return self.holders[0] if self.panda_job.batch_job_id else None

    @property
    def statistics(self) -> JobStatistics | None:
        """Statistics of the batch job."""
        return job_facts.statistics_of(self.job) if self.job else None

    @cached_property
    def inside(self) -> PandaSummary | None:
        """Totals of all PanDA jobs inside the batch job."""
        return panda_jobs.panda_summary(self.job) if self.job else None

    @property
    def figures(self) -> list[tuple[Metric, Any]]:
        """PanDA's own metrics."""
        return [(metric, self._figures[metric.name]) for metric in PANDA_METRICS]

    @property
    def figure_groups(self) -> dict[str, list[job_facts.Figure]]:
        """Metrics of the batch job by subject."""
        return job_facts.groups(self.statistics) if self.statistics else {}

    @property
    def facts(self) -> dict[str, Any]:
        """The PanDA job as one JSON object, with its batch job."""
        return {
            **{name: getattr(self.panda_job, field) for name, field in PANDA_COLUMNS.items()},
            **self._figures,
            "cluster": self.panda_job.cluster.name,
            "simulated": self.panda_job.cluster.simulated,
            "batch_job": job_facts.facts(self.job, self.statistics, self.inside)
            if self.job
            else None,
        }

    @cached_property
    def _figures(self) -> dict[str, Any]:
        return panda_jobs.panda_metrics(self.panda_job)
