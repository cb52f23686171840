"""The job list: filters, columns, order, page and facets of a URL."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.core.exceptions import EmptyResultSet
from django.core.paginator import Paginator
from django.db import connection
from django.http import QueryDict

from ioportal.findings.flags import flag_texts
from ioportal.jobs.expressions import EachOf
from ioportal.jobs.job_filters import NOT_COMPUTED
from ioportal.jobs.models import Job, JobStatistics
from ioportal.site.models import Cluster
from ioportal.web.common.pagination import COUNTED, Concatenated
from ioportal.web.common.selection import SelectedJobs
from ioportal.web.common.tables import Table
from ioportal.web.jobs import columns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.contrib.auth.models import User
    from django.core.paginator import Page

    from ioportal.jobs.models import JobQuerySet
    from ioportal.web.common.tables import Column

MAX_JOBS = 10_000
_FIELDS = ("pk", "state", "quality", "queue", "owner")
_ALL = 0b1111
_COUNTED = {0b0111: "state", 0b1011: "quality", 0b1101: "queue", 0b1110: "user"}

# grouping() has a bit for each column that a row does not group by.
_LATEST = """
WITH latest (id, state, quality, queue, owner) AS MATERIALIZED ({jobs})
SELECT grouping(state, quality, queue, owner), coalesce(state, quality, queue, owner), count(*),
    NULL
FROM (SELECT * FROM latest LIMIT %s) latest
GROUP BY GROUPING SETS ((state), (quality), (queue), (owner))
UNION ALL
SELECT %s, NULL, count(*), array_agg(id) FROM latest
"""


@dataclass(frozen=True)
class LatestJobs:
    """The latest jobs, at most `MAX_JOBS`; older ones are reached with narrower filters."""

    keys: list[int] = field(default_factory=list)  # latest first
    has_more: bool = False
    # Number of jobs by value of a column, most frequent first; None: unknown.
    counts: dict[str, list[tuple[str | None, int]]] = field(default_factory=dict)

    @property
    def jobs(self) -> JobQuerySet:
        """The jobs."""
        return Job.objects.filter(pk__in=EachOf(self.keys))


def latest_jobs(jobs: JobQuerySet) -> LatestJobs:
    """Read and count the latest jobs in one statement, so that filters are evaluated once."""
    rows = jobs.order_by("-started_at", "-pk").values_list(*_FIELDS)[: MAX_JOBS + 1]
    try:
        statement, values = rows.query.sql_with_params()
    except EmptyResultSet:
        return LatestJobs()
    counts: dict[str, list[tuple[str | None, int]]] = {name: [] for name in _COUNTED.values()}
    keys: list[int] = []
    with connection.cursor() as cursor:
        cursor.execute(_LATEST.format(jobs=statement), [*values, MAX_JOBS, _ALL])
        for grouped, value, count, ids in cursor.fetchall():
            if grouped == _ALL:
                keys = ids or []
            else:
                counts[_COUNTED[grouped]].append((value, count))
    for value_counts in counts.values():
        value_counts.sort(key=lambda row: (-row[1], row[0] or ""))
    return LatestJobs(keys[:MAX_JOBS], len(keys) > MAX_JOBS, counts)


PER_PAGE = 50
DEFAULT_SORT = "-started"
_FACET_VALUES = 8
_FACET_FILTERS = ("state", "quality")  # set by facets, not by form fields
_ROWS_AT_ONCE = 2_000


@dataclass(frozen=True)
class FacetValue:
    """A value of a facet, its number of jobs, and the link that toggles it."""

    label: str
    count: int
    share: float  # of the largest count
    selected: bool
    url: str


@dataclass(frozen=True)
class Facet:
    """The filtered jobs by the values of one fact."""

    title: str
    values: list[FacetValue]


class JobList(SelectedJobs):
    """Selected jobs as rows, in the columns, the order and the page of the URL."""

    hidden_parameters = (*_FACET_FILTERS, "sort", "columns")

    def __init__(self, user: User, query: QueryDict) -> None:
        super().__init__(user, query)
        self.columns = columns.selected_columns(_column_names(query))
        self.sort = _sort(query.get("sort", ""))

    @cached_property
    def unknown(self) -> dict[str, list[str]]:
        """Errors of column and sort names, which the list ignores."""
        names = {
            "columns": _column_names(self.query),
            "sort": [name.removeprefix("-") for name in self.query.getlist("sort") if name],
        }
        return {
            parameter: [f"Unknown column {name[:64]!r}." for name in unknown]
            for parameter, values in names.items()
            if (unknown := [name for name in values if name not in columns.BY_NAME])
        }

    @property
    def errors(self) -> dict[str, list[str]]:
        """Errors of the query by parameter."""
        return {**self.filter.errors, **self.unknown}

    @property
    def short_url(self) -> str:
        """The URL of this list without default parameters."""
        page = self.query.get("page", "")
        return self.url(page=page if page != "1" else "")

    @property
    def is_short(self) -> bool:
        """Whether the query equals `short_url`."""
        return QueryDict(self.short_url.removeprefix("?")) == self.query

    @property
    def facet_errors(self) -> list[tuple[str, list[str], str]]:
        """Errors of filters without a field: label, errors, link to remove."""
        return [
            (self.filter.form[name].label, errors, self.url(**{name: []}))
            for name in _FACET_FILTERS
            if (errors := self.filter.errors.get(name))
        ]

    @property
    def other_parameters(self) -> list[tuple[str, list[str]]]:
        """Hidden fields of the column form: the other parameters of the URL."""
        excluded = {"columns", "page", "format"}
        return [(name, values) for name, values in self.query.lists() if name not in excluded]

    @property
    def ordered(self) -> list[JobQuerySet]:
        """The jobs in order."""
        return self._in_order(self.filtered)

    def values(self) -> Iterator[tuple[Any, ...]]:
        """Yield key, `simulated` and column values of each job, in order.

        At most `COUNTED` jobs.
        """
        expressions = [columns.expression(column) for column in self.columns]
        rows = (
            jobs.values_list("pk", "cluster__simulated", *expressions)[:COUNTED].iterator(
                _ROWS_AT_ONCE
            )
            for jobs in self.ordered
        )
        return islice(chain.from_iterable(rows), COUNTED)

    @cached_property
    def page(self) -> Page[int]:
        """The page of keys; an invalid number means the first, a large one the last."""
        return Paginator(self._keys, PER_PAGE).get_page(self.query.get("page"))

    @cached_property
    def jobs(self) -> list[Job]:
        """The jobs of the page, looked up by key: sorting whole rows is slow."""
        keys = list(self.page)
        jobs = Job.objects.select_related("cluster", "statistics").in_bulk(keys)
        flag_texts.mark_jobs(jobs.values(), self.user)
        return [jobs[key] for key in keys if key in jobs]

    @property
    def counts_stop(self) -> bool:
        """Whether there are more jobs than counts and pages cover."""
        return self._newest.has_more

    @property
    def total(self) -> int:
        """The number of jobs, up to the limit."""
        return len(self._newest.keys)

    @property
    def simulated_clusters(self) -> str:
        """The simulated part of the page; "" if there is none."""
        names = sorted({job.cluster.name for job in self.jobs if job.cluster.simulated})
        return f"all jobs of {' and '.join(names)}" if names else ""

    @cached_property
    def facets(self) -> list[Facet]:
        """Counts by state, quality, queue and user, of the latest jobs if there are many."""
        states: dict[str | None, str] = {state: state.label for state in Job.State}
        qualities: dict[str | None, str] = {None: "pending"}
        qualities |= {quality: quality.label for quality in JobStatistics.Quality}
        facets = (
            self._facet("State", "state", states),
            self._facet("Data quality", "quality", qualities),
            self._facet("Queue", "queue", {}),
            self._facet("User", "user", {}),
        )
        return [facet for facet in facets if facet.values]

    @property
    def table(self) -> Table[Job]:
        """The jobs of the page."""
        return Table(
            "Jobs",
            self.columns,
            self.jobs,
            css="jobs",
            sort=self.sort,
            address=lambda sort: self.url(sort=sort),
        )

    def choices(self) -> list[tuple[Column[Job], bool]]:
        """All columns, and whether they are selected."""
        return [(column, column in self.columns) for column in columns.COLUMNS]

    def url(self, **changes: str | list[str]) -> str:
        """Return the URL of the first page with changed parameters, without default values."""
        parameters = {k: v for k, v in self.query.lists() if k not in {"page", "format"}}
        for name, value in changes.items():
            parameters[name] = [value] if isinstance(value, str) else value
        query = {k: [v for v in values if v] for k, values in parameters.items()}
        if query.get("sort") == [DEFAULT_SORT]:
            del query["sort"]
        if columns.is_default(_column_names(self.query)):
            query.pop("columns", None)
        return "?" + urlencode(query, doseq=True)

    def _in_order(self, jobs: JobQuerySet) -> list[JobQuerySet]:
        """Order jobs by indexes, in parts if one index is not enough.

        Jobs without the figure come last. Jobs that have not started or ended are the latest by
        these times. Ties are latest first in the initial direction of the column.
        """
        direction = "-" if self.sort.startswith("-") else ""
        column = columns.BY_NAME[self.sort.removeprefix("-")]
        field = columns.field(column)
        without, with_value = (
            jobs.filter(**{f"{field}__isnull": is_null}) for is_null in (True, False)
        )
        if columns.is_statistic(column):
            parts = [
                with_value.order_by(f"{direction}{field}", f"{direction}pk"),
                without.order_by("-pk"),
            ]
            # Without statistics, the first part is empty and slow to scan.
            return parts[1:] if self.query.getlist("quality") == [NOT_COMPUTED] else parts
        latest_first = "" if column.ascending_first == bool(direction) else "-"
        ties = (f"{latest_first}started_at", f"{latest_first}pk")
        if field == "quality":
            return [
                with_value.order_by(f"{direction}{field}", *ties),
                without.order_by("-started_at", "-pk"),
            ]
        if field.startswith("cluster__"):
            clusters = Cluster.objects.order_by(f"{direction}name")
            return [jobs.filter(cluster=cluster).order_by(*ties) for cluster in clusters]
        return [jobs.order_by(f"{direction}{field}", *ties)]

    @cached_property
    def _newest(self) -> LatestJobs:
        return latest_jobs(self.filtered)

    @property
    def _keys(self) -> Any:
        """The keys of all rows that pages cover, in order."""
        if self.sort == DEFAULT_SORT:
            return self._newest.keys
        # Reuse the filtered keys, unless there are too many.
        jobs = self.filtered if self.counts_stop else self._newest.jobs
        parts = [part.values_list("pk", flat=True) for part in self._in_order(jobs)]
        return Concatenated(parts, self.total)

    def _facet(self, title: str, name: str, labels: dict[str | None, str]) -> Facet:
        counts = self._newest.counts.get(name, [])[:_FACET_VALUES]
        selected = {item for value in self.query.getlist(name) for item in value.split(",") if item}
        rows = [(value, jobs) for value, jobs in counts if value != ""]
        largest = max((jobs for _, jobs in rows), default=1)
        return Facet(
            title,
            [
                FacetValue(
                    label=labels.get(value) or value or "",
                    count=jobs,
                    share=jobs / largest,
                    selected=(choice := value or NOT_COMPUTED) in selected,
                    url=self.url(**{name: sorted(selected ^ {choice})}),
                )
                for value, jobs in rows
            ],
        )


def _column_names(query: QueryDict) -> list[str]:
    """Return column names of the URL: repeated, or separated by commas."""
    return [name for value in query.getlist("columns") for name in value.split(",") if name]


def _sort(name: str) -> str:
    return name if name.removeprefix("-") in columns.BY_NAME else DEFAULT_SORT
