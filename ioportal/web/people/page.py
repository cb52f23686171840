"""Users and projects: totals of their jobs, heaviest and typical jobs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.db.models import Aggregate, Count, F, FloatField, Max, Q, Sum
from django.urls import reverse

from ioportal.core.units import Unit
from ioportal.findings.cases import case_texts as cases
from ioportal.findings.flags import flag_texts
from ioportal.jobs.expressions import node_hours
from ioportal.jobs.models import Job, JobStatistics
from ioportal.load.impact import impact_totals, job_groups
from ioportal.site.contacts import contact, project_contact
from ioportal.web.cases.inbox import ALL
from ioportal.web.common.selection import SelectedJobs
from ioportal.web.common.tables import Column, Table, included
from ioportal.web.jobs import columns as job_columns
from ioportal.web.templatetags import ioportal as show
from ioportal.web.trends.page import TrendsPage

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import QueryDict

    from ioportal.core.time_ranges import TimeRange
    from ioportal.findings.cases.case_texts import CaseSummary
    from ioportal.load.impact.impact_totals import ImpactRow
    from ioportal.site.contacts import Contact
    from ioportal.web.trends.page import Trend

PER_PAGE = 50
DEFAULT_SORT = "-metadata_operations"
RANKED_BY = "metadata_operations"
_HEAVIEST_JOBS = 10
_TYPICAL_JOBS = 5
_JOB_COLUMNS = (
    "job",
    "metadata_operations",
    "peak_metadata_rate",
    "quality",
    "user",
    "project",
    "name",
    "state",
    "started",
    "node_count",
    "duration_s",
    "read_bytes",
    "write_bytes",
)
_TRENDS = ("jobs-ended", "node-hours", "metadata_operations", "duration_s")


@dataclass(frozen=True)
class Kind:
    """Users or projects."""

    name: str  # the parameter of the filter
    field: str  # of a job
    title: str
    plural: str
    url: str  # URL name of the page of one


USERS = Kind("user", "owner", "User", "Users", "user")
PROJECTS = Kind("project", "project", "Project", "Projects", "project")


def _figure(name: str, title: str, unit: Unit | str = "", about: str = "") -> Column[Totals]:
    form = show.minute if name == "last" else None
    return Column(name, title, f"figures__{name}", unit, about=about, form=form)


COLUMNS = (
    _figure("metadata_operations", "Metadata operations", Unit.COUNT, "sum over the jobs"),
    _figure(
        "mean_operation_us",
        "Mean operation time",
        Unit.MICROSECONDS,
        "mean of the jobs' mean operation times, weighted by their operations",
    ),
    _figure("heaviest", "Heaviest job", Unit.COUNT, "largest of one job"),
    _figure("typical", "Typical job", Unit.COUNT, "median of the jobs"),
    _figure("jobs", "Jobs", about="jobs that ran in the period"),
    _figure("node_hours", "Node-hours", about="nodes times hours of the runs within the period"),
    _figure("read_bytes", "Read", Unit.BYTES, "sum over the jobs"),
    _figure("write_bytes", "Written", Unit.BYTES, "sum over the jobs"),
    _figure("last", "Last started"),
)
_SORTS = ("name", *(column.name for column in COLUMNS))
_QUALITIES = tuple(JobStatistics.Quality.values)
_COUNTS: tuple[Column[Totals], ...] = (
    *(Column(quality, "", f"figures__{quality}") for quality in _QUALITIES),
    Column("not_computed", ""),
)


class _Median(Aggregate):
    """The interpolated median."""

    function = "percentile_cont"
    template = "%(function)s(0.5) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = FloatField()


_FIGURES: dict[str, Any] = {
    "jobs": Count("pk"),
    "metadata_operations": Sum("statistics__metadata_operations"),
    "mean_operation_us": Sum(
        F("statistics__mean_operation_us") * F("statistics__metadata_operations")
    )
    / Sum(
        "statistics__metadata_operations",
        filter=Q(
            statistics__mean_operation_us__isnull=False, statistics__metadata_operations__gt=0
        ),
    ),
    "read_bytes": Sum("statistics__read_bytes"),
    "write_bytes": Sum("statistics__write_bytes"),
    "typical": _Median(f"statistics__{RANKED_BY}"),
    "heaviest": Max(f"statistics__{RANKED_BY}"),
    "last": Max("started_at"),
    **{quality: Count("pk", filter=Q(quality=quality)) for quality in _QUALITIES},
}


def _figures_of(selected: SelectedJobs) -> dict[str, Any]:
    """Return the aggregates of jobs; node-hours within the period of the filters only."""
    period = selected.filter.form.cleaned_data if selected.is_valid else {}
    return {**_FIGURES, "node_hours": Sum(node_hours(period.get("start"), period.get("end")))}


@dataclass(frozen=True)
class Totals:
    """Figures over the jobs of one user or project."""

    name: str
    figures: dict[str, Any]  # by the names of `COLUMNS` and qualities

    @property
    def qualities(self) -> list[tuple[str, int]]:
        """Numbers of jobs by data quality, then without statistics."""
        computed = [(quality, self.figures[quality]) for quality in _QUALITIES]
        return [*computed, ("not computed", self.not_computed)]

    @property
    def not_computed(self) -> int:
        """The number of jobs without statistics."""
        rest: int = self.figures["jobs"] - sum(self.figures[quality] for quality in _QUALITIES)
        return rest

    @property
    def bars(self) -> list[tuple[str, float, float]]:
        """Qualities as a bar of length 100: quality, position, width."""
        bars, reached = [], 0.0
        for quality, count in self.qualities:
            width = 100 * count / self.figures["jobs"]
            bars.append((quality, reached, width))
            reached += width
        return [bar for bar in bars if bar[2]]

    @property
    def facts(self) -> list[tuple[Column[Totals], str]]:
        """Columns and their values as text."""
        return [(column, column.content(self)) for column in COLUMNS]


class PeoplePage(SelectedJobs):
    """All users, or all projects, with selected jobs."""

    hidden_parameters = ("state", "quality", "sort")

    def __init__(self, kind: Kind, user: User, query: QueryDict) -> None:
        super().__init__(user, query)
        self.kind = kind
        sort = query.get("sort", "")
        self.sort = sort if sort.removeprefix("-") in _SORTS else DEFAULT_SORT

    @cached_property
    def totals(self) -> list[Totals]:
        """Totals in order; unknown values come last."""
        field = self.kind.field
        column = field if self.sort.removeprefix("-") == "name" else self.sort.removeprefix("-")
        order = F(column).desc if self.sort.startswith("-") else F(column).asc
        rows = (
            self.filtered.order_by()
            .values(field)
            .annotate(**_figures_of(self))
            .order_by(order(nulls_last=True), field)
        )
        return [Totals(row.pop(field), row) for row in rows]

    @cached_property
    def table(self) -> Table[Totals]:
        """Totals in columns; the page links each heaviest job."""
        columns = (
            Column(
                "name",
                self.kind.title,
                cell=lambda totals: totals.name or "unknown",
                link=self._url,
                ascending_first=True,
            ),
            *(
                replace(each, link=self._heaviest_url, hint=self._heaviest_title)
                if each.name == "heaviest"
                else each
                for each in COLUMNS
            ),
            *_COUNTS,
            Column(
                "", "Data quality", cell=lambda each: included("people/_quality.html", totals=each)
            ),
        )
        return Table(
            self.kind.plural,
            columns,
            self.totals,
            css="people",
            sort=self.sort,
            query=self.query,
            per_page=PER_PAGE,
        )

    def _url(self, totals: Totals) -> str:
        if not totals.name:
            return ""
        return f"{reverse(self.kind.url, args=[totals.name])}?{self.filters_query()}"

    def _heaviest_url(self, totals: Totals) -> str:
        job = self._heaviest_jobs.get((totals.name, totals.figures["heaviest"]))
        return reverse("job", args=[job.pk]) if job else ""

    def _heaviest_title(self, totals: Totals) -> str:
        job = self._heaviest_jobs.get((totals.name, totals.figures["heaviest"]))
        return f"job {job.display_id}" if job else ""

    @cached_property
    def _heaviest_jobs(self) -> dict[tuple[str, int], Job]:
        """The latest job with the heaviest value, by name and value, of the page."""
        names, values = set(), set()
        for totals in self.table.page:
            names.add(totals.name)
            values.add(totals.figures["heaviest"])
        field, figure = self.kind.field, f"statistics__{RANKED_BY}"
        jobs = (
            self.filtered.filter(**{f"{field}__in": names, f"{figure}__in": values - {None}})
            .select_related("statistics")
            .order_by(field, figure, "-started_at")
            .distinct(field, figure)
        )
        return {(getattr(job, field), getattr(job.statistics, RANKED_BY)): job for job in jobs}


class _WholeTrends(TrendsPage):
    """Trends over the same time as the totals."""

    def _default(self, extent: TimeRange) -> TimeRange:
        return extent


class PersonPage(SelectedJobs):
    """One user or project."""

    def __init__(self, kind: Kind, name: str, user: User, query: QueryDict) -> None:
        super().__init__(user, query, {kind.name: name})
        self.kind = kind
        self.name = name

    @cached_property
    def totals(self) -> Totals | None:
        """Totals of the jobs; None without jobs in the period."""
        figures = self.filtered.aggregate(**_figures_of(self))
        return Totals(self.name, figures) if figures["jobs"] else None

    @property
    def heaviest(self) -> list[Job]:
        """The jobs with most metadata operations."""
        return self._example_jobs[0]

    @property
    def typical(self) -> list[Job]:
        """The jobs around the median of metadata operations."""
        return self._example_jobs[1]

    @cached_property
    def _example_jobs(self) -> tuple[list[Job], list[Job]]:
        ascending = self._measured.order_by(f"statistics__{RANKED_BY}", "pk")
        first = max(0, self._measured.count() // 2 - _TYPICAL_JOBS // 2)
        heaviest, typical = (
            list(ascending.reverse()[:_HEAVIEST_JOBS]),
            list(ascending[first : first + _TYPICAL_JOBS]),
        )
        flag_texts.mark_jobs([*heaviest, *typical], self.user)
        return heaviest, typical

    @property
    def _measured(self) -> Any:
        is_measured = {f"statistics__{RANKED_BY}__isnull": False}
        return self.filtered.filter(**is_measured).select_related("cluster", "statistics")

    @cached_property
    def contact(self) -> Contact | None:
        """How to reach the user or project; None if not visible."""
        find = contact if self.kind is USERS else project_contact
        return find(self.name, self.user)

    @property
    def columns(self) -> list[Column[Job]]:
        """Columns of the job tables."""
        names = (name for name in _JOB_COLUMNS if name != self.kind.name)
        return [job_columns.BY_NAME[name] for name in names]

    @cached_property
    def impacts(self) -> list[ImpactRow]:
        """Impact of all jobs together, and of each application of a user."""
        if not self.is_valid:
            return []
        groups = job_groups.of_user if self.kind is USERS else job_groups.of_project
        period = self.filter.form.cleaned_data
        return impact_totals.rows_of_groups(
            groups(self.name), period.get("start"), period.get("end"), self.user
        )

    @property
    def cases(self) -> list[CaseSummary]:
        """Unresolved cases of a user."""
        return cases.for_owner(self.name, self.user) if self.kind is USERS else []

    @property
    def cases_url(self) -> str:
        """The list of all cases of a user."""
        return f"{reverse('case_list')}?{urlencode({'state': ALL, 'user': self.name})}"

    @cached_property
    def trends(self) -> TrendsPage:
        """Trends of the jobs."""
        return _WholeTrends(self.user, self.query, {self.kind.name: self.name})

    @cached_property
    def charts(self) -> list[Trend]:
        """The charts of the trends."""
        return list(self.trends.charts(_TRENDS))

    @property
    def facts(self) -> dict[str, Any]:
        """The totals as one JSON object."""
        columns: tuple[Column[Totals], ...] = (Column("name", ""), *COLUMNS, *_COUNTS)
        rows = [self.totals] if self.totals else []
        [values] = Table(self.name, columns, rows).facts or [{}]
        return {**values, "simulated": self.simulated}
