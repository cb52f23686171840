"""The job list as its URL describes it: filters, columns, order, page, facets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.http import QueryDict

from ioportal.jobs.models import Job, JobStatistics
from ioportal.site.models import Cluster
from ioportal.studies.filters import NOT_COMPUTED
from ioportal.studies.latest_jobs import newest_of
from ioportal.web.common.pagination import COUNTED, InTurn
from ioportal.web.common.selection import ChosenJobs
from ioportal.web.flags import badges
from ioportal.web.jobs import columns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.contrib.auth.models import User
    from django.core.paginator import Page

    from ioportal.jobs.models import JobQuerySet
    from ioportal.studies.latest_jobs import Newest
    from ioportal.web.jobs.columns import Column

PER_PAGE = 50
DEFAULT_SORT = "-started"
_FACET_VALUES = 8
_CLICKED = ("state", "quality")  # filters that facets set; the others are typed
_ROWS_AT_ONCE = 2_000


@dataclass(frozen=True)
class FacetValue:
    """One value of a fact, how many of the filtered jobs have it, and the link that toggles it."""

    label: str
    count: int
    share: float  # of the largest count
    selected: bool
    url: str


@dataclass(frozen=True)
class Facet:
    """How the filtered jobs spread over the values of one fact."""

    title: str
    values: list[FacetValue]


class Listing(ChosenJobs):
    """The chosen jobs as rows of the columns, in the order and on the page that the URL names."""

    carried_on = (*_CLICKED, "sort", "columns")

    def __init__(self, user: User, query: QueryDict) -> None:
        super().__init__(user, query)
        self.columns = columns.chosen(_column_names(query))
        self.sort = _sort(query.get("sort", ""))

    @cached_property
    def unknown(self) -> dict[str, list[str]]:
        """What is wrong with the columns and the order; the list leaves it out."""
        names = {
            "columns": _column_names(self.query),
            "sort": [name.removeprefix("-") for name in self.query.getlist("sort") if name],
        }
        return {
            parameter: [f"There is no column {name[:64]!r}." for name in unknown]
            for parameter, asked in names.items()
            if (unknown := [name for name in asked if name not in columns.BY_NAME])
        }

    @property
    def errors(self) -> dict[str, list[str]]:
        """What of the query was not understood, by parameter."""
        return {**self.filter.errors, **self.unknown}

    @property
    def short_url(self) -> str:
        """This list's URL without what goes without saying."""
        page = self.query.get("page", "")
        return self.url(page=page if page != "1" else "")

    @property
    def is_short(self) -> bool:
        """Whether the query is that of `short_url`."""
        return QueryDict(self.short_url.removeprefix("?")) == self.query

    @property
    def refused_clicks(self) -> list[tuple[str, list[str], str]]:
        """What is wrong with filters that have no field: label, errors, link that removes it."""
        return [
            (self.filter.form[name].label, errors, self.url(**{name: []}))
            for name in _CLICKED
            if (errors := self.filter.errors.get(name))
        ]

    @property
    def beside_columns(self) -> list[tuple[str, list[str]]]:
        """What the form of columns carries on: everything else that the URL says."""
        left_out = {"columns", "page", "format"}
        return [(name, values) for name, values in self.query.lists() if name not in left_out]

    @property
    def ordered(self) -> list[JobQuerySet]:
        """The jobs in order."""
        return self._in_order(self.filtered)

    def values(self) -> Iterator[tuple[Any, ...]]:
        """Yield each job's key, whether it is simulated, and the values of the columns, in order.

        At most `COUNTED` jobs.
        """
        shown = [column.expression for column in self.columns]
        rows = (
            jobs.values_list("pk", "cluster__simulated", *shown)[:COUNTED].iterator(_ROWS_AT_ONCE)
            for jobs in self.ordered
        )
        return islice(chain.from_iterable(rows), COUNTED)

    @cached_property
    def page(self) -> Page[int]:
        """The page that the URL names, of keys; nonsense means the first, too far the last."""
        return Paginator(self._keys, PER_PAGE).get_page(self.query.get("page"))

    @cached_property
    def jobs(self) -> list[Job]:
        """The page's jobs with all that a row shows, by key: sorting whole rows is slow."""
        keys = list(self.page)
        found = Job.objects.select_related("cluster", "statistics").in_bulk(keys)
        badges.mark(found.values(), self.user)
        return [found[key] for key in keys if key in found]

    @property
    def counts_stop(self) -> bool:
        """Whether there are more jobs than are counted, paged to, and counted by facets."""
        return self._newest.there_are_more

    @property
    def total(self) -> int:
        """Jobs found, up to the limit."""
        return len(self._newest.keys)

    @property
    def simulated_clusters(self) -> str:
        """What of the page is made up, in words; "" for nothing."""
        names = sorted({job.cluster.name for job in self.jobs if job.cluster.simulated})
        return f"All that is listed of {' and '.join(names)}" if names else ""

    @cached_property
    def facets(self) -> list[Facet]:
        """Counts by state, quality, queue and user, of the newest jobs where they are many.

        A fact that no job has a value of is left out.
        """
        states: dict[str | None, str] = {state: state.label for state in Job.State}
        qualities: dict[str | None, str] = {None: "not computed yet"}
        qualities |= {quality: quality.label for quality in JobStatistics.Quality}
        facets = (
            self._facet("State", "state", states),
            self._facet("Data quality", "quality", qualities),
            self._facet("Queue", "queue", {}),
            self._facet("User", "user", {}),
        )
        return [facet for facet in facets if facet.values]

    def column_links(self) -> Iterator[tuple[Column, str, str]]:
        """Yield each column, its ``aria-sort`` and the link that sorts by it."""
        for column in self.columns:
            if self.sort == f"-{column.name}":
                yield column, "descending", self.url(sort=column.name)
            elif self.sort == column.name:
                yield column, "ascending", self.url(sort=f"-{column.name}")
            else:
                first = column.name if column.ascending_first else f"-{column.name}"
                yield column, "", self.url(sort=first)

    def choices(self) -> list[tuple[Column, bool]]:
        """All columns, and whether they are shown."""
        return [(column, column in self.columns) for column in columns.COLUMNS]

    def url(self, **changes: str | list[str]) -> str:
        """Return this list's URL with parameters changed, back on its first page.

        What goes without saying is left out.
        """
        parameters = {k: v for k, v in self.query.lists() if k not in {"page", "format"}}
        for name, value in changes.items():
            parameters[name] = [value] if isinstance(value, str) else value
        kept = {k: [v for v in values if v] for k, values in parameters.items()}
        if kept.get("sort") == [DEFAULT_SORT]:
            del kept["sort"]
        if columns.is_default(_column_names(self.query)):
            kept.pop("columns", None)
        return "?" + urlencode(kept, doseq=True)

    def _in_order(self, jobs: JobQuerySet) -> list[JobQuerySet]:
        """Order jobs as indexes do, in parts where one index cannot.

        By a figure come first those of which it is known. Of facts only times may be missing: what
        has not started, or not ended, is the newest. Those that share a fact are newest first in
        the direction that the column's head leads to first.
        """
        direction = "-" if self.sort.startswith("-") else ""
        column = columns.BY_NAME[self.sort.removeprefix("-")]
        field = column.field
        unknown, known = (jobs.filter(**{f"{field}__isnull": is_null}) for is_null in (True, False))
        if column.of_statistics:
            parts = [
                known.order_by(f"{direction}{field}", f"{direction}pk"),
                unknown.order_by("-pk"),
            ]
            # Jobs without figures would be looked for among the figures of all others.
            return parts[1:] if self.query.getlist("quality") == [NOT_COMPUTED] else parts
        newest_first = "" if column.ascending_first == bool(direction) else "-"
        ties = (f"{newest_first}started_at", f"{newest_first}pk")
        if field == "quality":
            return [
                known.order_by(f"{direction}{field}", *ties),
                unknown.order_by("-started_at", "-pk"),
            ]
        if field.startswith("cluster__"):
            clusters = Cluster.objects.order_by(f"{direction}name")
            return [jobs.filter(cluster=cluster).order_by(*ties) for cluster in clusters]
        return [jobs.order_by(f"{direction}{field}", *ties)]

    @cached_property
    def _newest(self) -> Newest:
        return newest_of(self.filtered)

    @property
    def _keys(self) -> Any:
        """The keys of all rows that pages reach, in order."""
        if self.sort == DEFAULT_SORT:
            return self._newest.keys
        # What filters cost is not to be paid twice, unless few of very many jobs are asked for.
        jobs = self.filtered if self.counts_stop else self._newest.jobs
        parts = [part.values_list("pk", flat=True) for part in self._in_order(jobs)]
        return InTurn(parts, self.total)

    def _facet(self, title: str, name: str, labels: dict[str | None, str]) -> Facet:
        counts = self._newest.counts.get(name, [])[:_FACET_VALUES]
        chosen = {word for value in self.query.getlist(name) for word in value.split(",") if word}
        rows = [(value, jobs) for value, jobs in counts if value != ""]
        largest = max((jobs for _, jobs in rows), default=1)
        return Facet(
            title,
            [
                FacetValue(
                    label=labels.get(value) or value or "",
                    count=jobs,
                    share=jobs / largest,
                    selected=(word := value or NOT_COMPUTED) in chosen,
                    url=self.url(**{name: sorted(chosen ^ {word})}),
                )
                for value, jobs in rows
            ],
        )


def _column_names(query: QueryDict) -> list[str]:
    """Return the names of columns that the URL asks for: repeated, or separated by commas."""
    return [name for value in query.getlist("columns") for name in value.split(",") if name]


def _sort(wanted: str) -> str:
    return wanted if wanted.removeprefix("-") in columns.BY_NAME else DEFAULT_SORT
