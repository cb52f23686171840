"""Users and projects: what their jobs add up to, and which of them stand for the rest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.core.paginator import Paginator
from django.db.models import Aggregate, BigIntegerField, Count, F, Max, Q, Sum

from ioportal.analysis.metrics import Unit
from ioportal.jobs.models import Job, JobStatistics
from ioportal.jobs.runs import node_hours
from ioportal.reporting.formatting import SHORT_UNITS
from ioportal.web.common.selection import ChosenJobs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from django.contrib.auth.models import User
    from django.core.paginator import Page
    from django.http import QueryDict

PER_PAGE = 50
DEFAULT_SORT = "-metadata_operations"
WORST_BY = "metadata_operations"  # what the seeds' complaint was about
_WORST_JOBS = 10
_TYPICAL_JOBS = 5


@dataclass(frozen=True)
class Kind:
    """Whose jobs are added up."""

    name: str  # the parameter of the filter
    field: str  # of a job
    title: str
    plural: str
    url: str  # the name of one's page


USERS = Kind("user", "owner", "User", "Users", "user")
PROJECTS = Kind("project", "project", "Project", "Projects", "project")


@dataclass(frozen=True)
class Column:
    """A sum, or another figure, of somebody's jobs."""

    name: str  # in URLs and twins: never renamed
    title: str
    unit: Unit | None = None
    about: str = ""
    of_a_job: bool = False  # some job has this very figure

    @property
    def header_unit(self) -> str:
        """The unit as the column's head shows it."""
        return SHORT_UNITS[self.unit] if self.unit else ""


COLUMNS = (
    Column("metadata_operations", "Metadata operations", Unit.COUNT, "sum over the jobs"),
    Column("worst", "Worst job", Unit.COUNT, "operations of the job with most", of_a_job=True),
    Column("typical", "Typical job", Unit.COUNT, "operations of the middle job", of_a_job=True),
    Column("jobs", "Jobs", about="that ran in the period"),
    Column("node_hours", "Node-hours", about="nodes times hours of their runs in the period"),
    Column("read_bytes", "Read", Unit.BYTES, "sum over the jobs"),
    Column("write_bytes", "Written", Unit.BYTES, "sum over the jobs"),
    Column("last", "Last started"),
)
_SORTS = ("name", *(column.name for column in COLUMNS))
_QUALITIES = tuple(JobStatistics.Quality.values)
HEADER = (*_SORTS, *_QUALITIES, "not_computed")


class _Middle(Aggregate):
    """The median that some row really has: the lower of two."""

    function = "percentile_disc"
    template = "%(function)s(0.5) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = BigIntegerField()


_FIGURES: dict[str, Any] = {
    "jobs": Count("pk"),
    "metadata_operations": Sum("statistics__metadata_operations"),
    "read_bytes": Sum("statistics__read_bytes"),
    "write_bytes": Sum("statistics__write_bytes"),
    "typical": _Middle(f"statistics__{WORST_BY}"),
    "worst": Max(f"statistics__{WORST_BY}"),
    "last": Max("started_at"),
    **{quality: Count("pk", filter=Q(quality=quality)) for quality in _QUALITIES},
}


def _figures_of(chosen: ChosenJobs) -> dict[str, Any]:
    """Return what chosen jobs add up to; of their runs, the part in the period of the filters."""
    period = chosen.filter.form.cleaned_data if chosen.is_valid else {}
    return {**_FIGURES, "node_hours": Sum(node_hours(period.get("start"), period.get("end")))}


@dataclass(frozen=True)
class Sums:
    """What the jobs of one of them add up to."""

    name: str
    figures: dict[str, Any]  # by the names of `COLUMNS` and qualities

    @property
    def qualities(self) -> list[tuple[str, int]]:
        """How many of the jobs are of which data quality; those without figures last."""
        known = [(quality, self.figures[quality]) for quality in _QUALITIES]
        return [*known, ("not computed", self.not_computed)]

    @property
    def not_computed(self) -> int:
        """Jobs without figures."""
        rest: int = self.figures["jobs"] - sum(self.figures[quality] for quality in _QUALITIES)
        return rest

    @property
    def bars(self) -> list[tuple[str, float, float]]:
        """The mix of qualities as a strip of 100: kind, position, width."""
        bars, reached = [], 0.0
        for quality, count in self.qualities:
            width = 100 * count / self.figures["jobs"]
            bars.append((quality, reached, width))
            reached += width
        return [bar for bar in bars if bar[2]]

    @property
    def facts(self) -> list[tuple[Column, Any]]:
        """Every column and its figure."""
        return [(column, self.figures[column.name]) for column in COLUMNS]

    @property
    def row(self) -> list[Any]:
        """Its row in the twins, as `HEADER` says."""
        figures = (value for _, value in self.facts)
        return [self.name, *figures, *(count for _, count in self.qualities)]


class People(ChosenJobs):
    """Everybody of one kind with jobs that the filters choose."""

    carried_on = ("state", "quality", "sort")

    def __init__(self, kind: Kind, user: User, query: QueryDict) -> None:
        super().__init__(user, query)
        self.kind = kind
        asked = query.get("sort", "")
        self.sort = asked if asked.removeprefix("-") in _SORTS else DEFAULT_SORT

    @cached_property
    def sums(self) -> list[Sums]:
        """All of them, in order; what is not known comes last."""
        field = self.kind.field
        column = field if self.sort.removeprefix("-") == "name" else self.sort.removeprefix("-")
        order = F(column).desc if self.sort.startswith("-") else F(column).asc
        rows = (
            self.filtered.order_by()
            .values(field)
            .annotate(**_figures_of(self))
            .order_by(order(nulls_last=True), field)
        )
        return [Sums(row.pop(field), row) for row in rows]

    @cached_property
    def page(self) -> Page[Sums]:
        """The page that the URL names."""
        return Paginator(self.sums, PER_PAGE).get_page(self.query.get("page"))

    def rows(self) -> Iterator[tuple[Sums, list[tuple[Column, Any, Job | None]]]]:
        """Yield the page's sums, and by column each figure and the job that it leads to."""
        found = self._representatives(self.page)
        for sums in self.page:
            yield (
                sums,
                [
                    (column, value, found.get((sums.name, value)) if column.of_a_job else None)
                    for column, value in sums.facts
                ],
            )

    def _representatives(self, shown: Iterable[Sums]) -> dict[tuple[str, int], Job]:
        """Return the newest job of each that has its typical, or its worst, figure."""
        names, values = set(), set()
        for sums in shown:
            names.add(sums.name)
            values |= {sums.figures["typical"], sums.figures["worst"]}
        field, figure = self.kind.field, f"statistics__{WORST_BY}"
        jobs = (
            self.filtered.filter(**{f"{field}__in": names, f"{figure}__in": values - {None}})
            .select_related("statistics")
            .order_by(field, figure, "-started_at")
            .distinct(field, figure)
        )
        return {(getattr(job, field), getattr(job.statistics, WORST_BY)): job for job in jobs}

    def column_links(self) -> Iterator[tuple[Column, str, str]]:
        """Yield each column, its ``aria-sort`` and the order that its head leads to."""
        for column in (Column("name", self.kind.title), *COLUMNS):
            if self.sort == f"-{column.name}":
                yield column, "descending", column.name
            elif self.sort == column.name:
                yield column, "ascending", f"-{column.name}"
            else:
                yield column, "", column.name if column.name == "name" else f"-{column.name}"


class Person(ChosenJobs):
    """One of them."""

    def __init__(self, kind: Kind, name: str, user: User, query: QueryDict) -> None:
        super().__init__(user, query, {kind.name: name})
        self.kind = kind
        self.name = name

    @cached_property
    def sums(self) -> Sums | None:
        """What the jobs add up to; None: there is none in the period."""
        figures = self.filtered.aggregate(**_figures_of(self))
        return Sums(self.name, figures) if figures["jobs"] else None

    @cached_property
    def worst(self) -> list[Job]:
        """The jobs with most metadata operations."""
        return list(self._measured.order_by(f"-statistics__{WORST_BY}", "-pk")[:_WORST_JOBS])

    @cached_property
    def typical(self) -> list[Job]:
        """The jobs in the middle by the same figure: those just below it, and those above."""
        middle = self._measured.count() // 2
        first = max(0, middle - _TYPICAL_JOBS // 2)
        ordered = self._measured.order_by(f"statistics__{WORST_BY}", "pk")
        return list(ordered[first : first + _TYPICAL_JOBS])

    @property
    def _measured(self) -> Any:
        known = {f"statistics__{WORST_BY}__isnull": False}
        return self.filtered.filter(**known).select_related("cluster", "statistics")
