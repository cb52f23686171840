"""The list of PanDA jobs: filters and page of a URL."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.urls import reverse

from ioportal.core.units import Unit
from ioportal.jobs.populations import PANDA_JOBS
from ioportal.load.job_exports import PANDA_COLUMNS, ROWS_PER_FETCH
from ioportal.web.common.pagination import COUNTED
from ioportal.web.common.selection import SelectedJobs
from ioportal.web.common.tables import Column, Table, to
from ioportal.web.templatetags import ioportal as show

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.contrib.auth.models import User
    from django.http import QueryDict

    from ioportal.jobs.models import WorkloadJob

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
