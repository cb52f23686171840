"""The list of PanDA jobs: filters and page of a URL."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from ioportal.jobs.populations import PANDA_JOBS
from ioportal.load.job_exports import PANDA_COLUMNS, ROWS_PER_FETCH
from ioportal.web.common.pagination import COUNTED, CountedPaginator
from ioportal.web.common.selection import SelectedJobs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.contrib.auth.models import User
    from django.core.paginator import Page
    from django.http import QueryDict

    from ioportal.jobs.models import WorkloadJob

PER_PAGE = 50
_LIST_COLUMNS = {"cluster": "cluster__name", "batch_job": "batch_job_id"}
HEADER = (*PANDA_COLUMNS, *_LIST_COLUMNS)


class PandaJobList(SelectedJobs):
    """Selected PanDA jobs, highest ids first."""

    hidden_parameters = ()

    def __init__(self, user: User, query: QueryDict) -> None:
        super().__init__(user, query, kind=PANDA_JOBS)

    @cached_property
    def page(self) -> Page[WorkloadJob]:
        """The page; an invalid number means the first, a large one the last."""
        rows = self._latest_first.select_related("cluster")
        return CountedPaginator(rows, PER_PAGE).get_page(self.query.get("page"))

    @property
    def total(self) -> int:
        """The number of PanDA jobs, up to `COUNTED`."""
        return self.page.paginator.count

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
