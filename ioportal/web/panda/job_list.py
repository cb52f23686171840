"""PanDA jobs as pages list them, by the filters of an URL, and what their twins' columns are."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from ioportal.studies.populations import PANDA_JOBS
from ioportal.web.common.pagination import COUNTED, CountedPaginator
from ioportal.web.common.selection import ChosenJobs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.contrib.auth.models import User
    from django.core.paginator import Page
    from django.http import QueryDict

    from ioportal.jobs.models import WorkloadJob

PER_PAGE = 50
ROWS_AT_ONCE = 2_000
TWIN_COLUMNS = {  # PanDA's own names, so that rows can be joined with its answers
    "pandaid": "panda_id",
    "jeditaskid": "task_id",
    "attemptnr": "attempt",
    "jobstatus": "state",
    "error": "error",
    "batchid": "reported_batch_id",
    "computingsite": "site",
    "modificationhost": "host",
    "produsername": "user",
    "transformation": "transformation",
    "creationtime": "created_at",
    "starttime": "started_at",
    "endtime": "ended_at",
    "modificationtime": "modified_at",
    "corecount": "core_count",
    "cpuconsumptiontime": "cpu_s",
}
_LISTED_BESIDES = {"cluster": "cluster__name", "batch_job": "batch_job_id"}
HEADER = (*TWIN_COLUMNS, *_LISTED_BESIDES)


class PandaListing(ChosenJobs):
    """The chosen PanDA jobs, the newest ids first."""

    carried_on = ()

    def __init__(self, user: User, query: QueryDict) -> None:
        super().__init__(user, query, counted=PANDA_JOBS)

    @cached_property
    def page(self) -> Page[WorkloadJob]:
        """The page that the URL names; nonsense means the first, too far the last."""
        shown = self._newest_first.select_related("cluster")
        return CountedPaginator(shown, PER_PAGE).get_page(self.query.get("page"))

    @property
    def total(self) -> int:
        """PanDA jobs found, up to `COUNTED`."""
        return self.page.paginator.count

    @property
    def counts_stop(self) -> bool:
        """Whether there may be more than are counted."""
        return self.total >= COUNTED

    def values(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of the twins, as `HEADER` says: at most `COUNTED`."""
        columns = (*TWIN_COLUMNS.values(), *_LISTED_BESIDES.values())
        yield from self._newest_first.values_list(*columns)[:COUNTED].iterator(ROWS_AT_ONCE)

    @property
    def _newest_first(self) -> Any:
        return self.filtered.order_by("-panda_id", "-cluster")
