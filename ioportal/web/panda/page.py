"""The list of PanDA jobs, and the page of one."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.shortcuts import get_object_or_404
from django.urls import reverse

from ioportal.core.units import Unit
from ioportal.jobs import job_facts, panda_jobs
from ioportal.jobs.models import Job, JobStatistics, WorkloadJob
from ioportal.jobs.populations.selections import PANDA_JOBS
from ioportal.load.job_exports import PANDA_COLUMNS, ROWS_PER_FETCH
from ioportal.metrics import PANDA_METRICS
from ioportal.web.common.pagination import COUNTED
from ioportal.web.common.selection import SelectedJobs
from ioportal.web.common.tables import Column, Table, to
from ioportal.web.templatetags import ioportal as show

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.contrib.auth.models import User
    from django.http import QueryDict

    from ioportal.jobs.panda_jobs import PandaSummary
    from ioportal.metrics import Metric

PER_PAGE = 50
_LIST_COLUMNS = {"cluster": "cluster__name", "batch_job": "batch_job_id"}
HEADER = (*PANDA_COLUMNS, *_LIST_COLUMNS)


def _task_url(job: WorkloadJob) -> str:
    return f"{reverse('panda_list')}?jeditaskid={job.task_id}" if job.task_id is not None else ""


COLUMNS: tuple[Column[WorkloadJob], ...] = (
    Column(
        "pandaid",
        "PanDA id",
        lambda job: str(job.panda_id),
        link=to("panda_job", "cluster__name", "panda_id"),
    ),
    Column("jobstatus", "State", "state", form=lambda state: show.badge(state, state)),
    Column("error", "Error", form=show.clipped),
    Column("jeditaskid", "Task", "task_id", form=str, link=_task_url),
    Column("batch_job", "Batch job", "reported_batch_id", link=to("job", "batch_job_id")),
    Column("starttime", "Started", "started_at"),
    Column("endtime", "Ended", "ended_at"),
    Column("corecount", "Cores", "core_count", ""),
    Column("cpuconsumptiontime", "CPU time", "cpu_s", Unit.SECONDS),
    Column("modificationhost", "Node", "host"),
    Column("transformation", "Transformation"),
    Column("produsername", "User", "user"),
    Column("computingsite", "Site", "site"),
)


class PandaJobList(SelectedJobs):
    """Selected PanDA jobs, highest ids first."""

    hidden_parameters = ()

    def __init__(self, user: User, query: QueryDict) -> None:
        super().__init__(user, query, kind=PANDA_JOBS)

    @cached_property
    def table(self) -> Table[WorkloadJob]:
        """The PanDA jobs with the columns of the page."""
        jobs = self._latest_first.select_related("cluster")
        return Table("PanDA jobs", COLUMNS, jobs, query=self.query, per_page=PER_PAGE)

    @property
    def total(self) -> int:
        """The number of PanDA jobs, up to `COUNTED`."""
        return int(self.table.page.paginator.count)

    @property
    def counts_stop(self) -> bool:
        """Whether there may be more jobs than kind."""
        return self.total >= COUNTED

    def values(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of exports with the columns of `HEADER`, at most `COUNTED`."""
        columns = (*PANDA_COLUMNS.values(), *_LIST_COLUMNS.values())
        yield from self._latest_first.values_list(*columns)[:COUNTED].iterator(ROWS_PER_FETCH)

    @property
    def _latest_first(self) -> Any:
        return self.filtered.order_by("-panda_id", "-cluster")


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
