"""Timelines of a few jobs, aligned at their starts."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import polars as pl
from django.urls import reverse
from django.utils import timezone

from ioportal.core.charts import timelines as charts
from ioportal.core.charts.palette import MOST_ARMS
from ioportal.core.charts.time_axis import ElapsedAxis
from ioportal.core.charts.timelines import Chart, Style
from ioportal.jobs import job_facts, similar_jobs
from ioportal.jobs.job_filters import by_id
from ioportal.jobs.models import Job
from ioportal.load.job_series import JobSeries
from ioportal.load.step_charts import BY_NAME, ROWS_SHOWN, Timeline
from ioportal.telemetry.models import LARGEST_BIGINT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from django.contrib.auth.models import User
    from django.http import QueryDict

    from ioportal.core.charts.time_axis import Figure
    from ioportal.core.time_ranges import TimeRange
    from ioportal.core.timelines import Steps
    from ioportal.metrics import Metric

_OPTIONS = {  # title and values of each parameter; the first value is the default
    "align": ("Align by", {"elapsed": "time since start", "share": "share of the run"}),
    "per": ("Rates", {"job": "of whole jobs", "node": "per node"}),
    "scale": ("Scale", {"linear": "linear", "log": "logarithmic"}),
}
HEADER = (
    "job_key",
    "job",
    "start_s",
    "end_s",
    "start_share",
    "end_share",
    "observed_sources",
    "sources",
    "per_second",
)
_SUGGESTIONS = 6
_PAGE_OF_JOB = re.compile(r"(?:.*/)?jobs/(?P<key>\d{1,18})/?(?:[?#].*)?", re.ASCII)
_FROM_MDTS = "Counted by the MDTs by job id (job_stats), aligned at the start of each job."
_COMPARED_FIGURES = (*job_facts.GROUPS["Run"], *job_facts.GROUPS["Metadata"])


def _all_kinds(steps: Steps) -> Steps:
    """Return the sum of all kinds."""
    total = pl.sum_horizontal(steps.kinds).alias("operations")
    return replace(
        steps, frame=steps.frame.select("start", "end", "observed", total), kinds=("operations",)
    )


def _per(number: int | None, steps: Steps) -> Steps:
    """Return rates divided by a number; unknown: no steps."""
    if not number:
        return replace(steps, frame=steps.frame.clear())
    [kind] = steps.kinds
    return replace(steps, frame=steps.frame.with_columns(pl.col(kind) / number))


_OVERLAYS: dict[str, tuple[str, Callable[[Steps], Steps]]] = {
    "opens": ("Opens", lambda steps: steps.only(("open",))),
    "closes": ("Closes", lambda steps: steps.only(("close",))),
    "metadata": ("Metadata operations", _all_kinds),
}


def find_job(user: User, text: str) -> Job | None:
    """Return the latest visible job of a batch id, array task, launch or URL of a job page."""
    jobs = Job.objects.visible_to(user)
    if match := _PAGE_OF_JOB.fullmatch(text):
        return jobs.filter(pk=int(match["key"])).first()
    return jobs.filter(by_id([text])).order_by("-submitted_at", "-pk").first()


@dataclass(frozen=True)
class ComparedJob:
    """A job with its known run."""

    job: Job
    run: TimeRange
    number: int

    @cached_property
    def name(self) -> str:
        """Its id and date: '3567126, 15 Aug 2017'."""
        return f"{self.job.display_id}, {timezone.localtime(self.run.start):%-d %b %Y}"

    @cached_property
    def series(self) -> JobSeries:
        """The rates of its run."""
        return JobSeries(self.job, self.run)

    @property
    def figures(self) -> dict[str, job_facts.Figure]:
        """Its metrics by name."""
        statistics = job_facts.statistics_of(self.job)
        groups = job_facts.groups(statistics) if statistics else {}
        return {figure.metric.name: figure for group in groups.values() for figure in group}


class OverlayPage:
    """Up to four jobs of the URL, as far as `user` may see them.

    `job` is the key of a job (repeated); other parameters are `_OPTIONS`.
    """

    most = MOST_ARMS

    def __init__(self, user: User, query: QueryDict) -> None:
        self.query = query
        self._user = user

    @property
    def keys(self) -> list[str]:
        """The distinct values of the parameter `job`."""
        return list(dict.fromkeys(filter(None, self.query.getlist("job"))))

    @cached_property
    def errors(self) -> dict[str, list[str]]:
        """Errors of the URL by parameter."""
        errors: dict[str, list[str]] = {}
        if self._missing:
            shown = ", ".join(repr(key[:32]) for key in self._missing[:MOST_ARMS])
            errors["job"] = [f"No visible job has the key {shown}."]
        if self._not_run:
            ids = ", ".join(job.display_id for job in self._not_run)
            errors.setdefault("job", []).append(f"Not started yet: {ids}.")
        if len(self.keys) > MOST_ARMS:
            errors.setdefault("job", []).append(
                f"Select at most {MOST_ARMS} jobs. Only the first {MOST_ARMS} are shown."
            )
        if self.option("per") == "node" and self._without_nodes:
            ids = ", ".join(compared.job.display_id for compared in self._without_nodes)
            errors["per"] = [f"The number of nodes is unknown: {ids}."]
        for name, (_, values) in _OPTIONS.items():
            value = self.query.get(name, "")
            if value and value not in values:
                errors[name] = [f"{value[:32]!r} is not one of {', '.join(values)}."]
        return errors

    @property
    def _without_nodes(self) -> list[ComparedJob]:
        return [compared for compared in self.jobs if not compared.job.node_count]

    @cached_property
    def _found(self) -> dict[str, Job]:
        """Visible jobs by key."""
        keys = [
            key
            for key in self.keys[:MOST_ARMS]
            if key.isascii()
            and key.isdigit()
            and len(key) <= len(str(LARGEST_BIGINT))
            and int(key) <= LARGEST_BIGINT
        ]
        visible = Job.objects.visible_to(self._user).select_related("cluster", "statistics")
        return {str(job.pk): job for job in visible.filter(pk__in=keys)}

    @property
    def _missing(self) -> list[str]:
        return [key for key in self.keys[:MOST_ARMS] if key not in self._found]

    @property
    def _not_run(self) -> list[Job]:
        return [job for job in self._found.values() if job_facts.run(job) is None]

    @cached_property
    def jobs(self) -> list[ComparedJob]:
        """The jobs in the order of the URL."""
        found = (self._found.get(key) for key in self.keys[:MOST_ARMS])
        runs = [(job, run) for job in found if job and (run := job_facts.run(job))]
        return [ComparedJob(job, run, number + 1) for number, (job, run) in enumerate(runs)]

    @property
    def simulated(self) -> bool:
        """Whether any of the jobs is simulated."""
        return any(compared.job.cluster.simulated for compared in self.jobs)

    def option(self, name: str) -> str:
        """Return the value of an option; an invalid one means the default."""
        _, values = _OPTIONS[name]
        value = self.query.get(name, "")
        return value if value in values else next(iter(values))

    @property
    def _chosen(self) -> dict[str, str]:
        """The options that are not the default."""
        return {
            name: value
            for name, (_, values) in _OPTIONS.items()
            if (value := self.option(name)) != next(iter(values))
        }

    @property
    def options(self) -> list[tuple[str, list[tuple[str, str, bool]]]]:
        """The options: title; text and URL of each value, and whether it is current."""
        return [
            (
                title,
                [
                    (text, self.address(options={name: value}), value == self.option(name))
                    for value, text in values.items()
                ],
            )
            for name, (title, values) in _OPTIONS.items()
        ]

    @property
    def aligned_by(self) -> str:
        """The alignment in words."""
        return _OPTIONS["align"][1][self.option("align")]

    def address(
        self, *more: int, without: int | None = None, options: Mapping[str, str] | None = None
    ) -> str:
        """Return the URL with these jobs, one more or one less, or with other options."""
        keys = [compared.job.pk for compared in self.jobs if compared.job.pk != without]
        query = urlencode({"job": [*keys, *more], **self._chosen, **(options or {})}, doseq=True)
        return f"{reverse('compare_jobs')}?{query}"

    @property
    def listed(self) -> list[tuple[ComparedJob, str]]:
        """Jobs with the URL of the page without them."""
        return [(compared, self.address(without=compared.job.pk)) for compared in self.jobs]

    @cached_property
    def suggestions(self) -> list[tuple[Job, str]]:
        """Jobs similar to the first job, latest first, each with the URL that adds it."""
        if not self.jobs or len(self.jobs) == MOST_ARMS:
            return []
        similar = similar_jobs.for_job(self.jobs[0].job).values("pk")
        shown = [compared.job.pk for compared in self.jobs]
        visible = Job.objects.visible_to(self._user).filter(pk__in=similar).exclude(pk__in=shown)
        latest = visible.order_by("-started_at", "-pk")[:_SUGGESTIONS]
        return [(job, self.address(job.pk)) for job in latest]

    @property
    def population_query(self) -> str:
        """The query for a comparison of the jobs of the first job's user and application."""
        job = self.jobs[0].job
        filters = urlencode(
            {name: text for name, text in (("user", job.owner), ("name", job.name)) if text}
        )
        return urlencode({"arm": filters})

    @property
    def hidden(self) -> list[tuple[str, str]]:
        """Hidden fields of the form that adds a job."""
        return [*(("job", str(compared.job.pk)) for compared in self.jobs), *self._chosen.items()]

    @cached_property
    def overlays(self) -> list[Overlay]:
        """A chart for each quantity, with a line for each job."""
        return [Overlay(name, self) for name in _OVERLAYS] if self.jobs else []

    def overlay(self, name: str) -> Overlay | None:
        """Return one chart; None if there is none of this name."""
        return Overlay(name, self) if name in _OVERLAYS else None

    @cached_property
    def panels(self) -> list[Panel]:
        """Opens and closes of each job."""
        return [Panel(compared, self) for compared in self.jobs]

    @property
    def highest(self) -> float:
        """The highest rate of the panels."""
        return max(charts.highest_of(panel.steps) for panel in self.panels)

    @property
    def figures(self) -> list[tuple[Metric, list[tuple[float | None, float | None]]]]:
        """Metrics with known values: value of each job, and its ratio to the first job's."""
        by_job = [compared.figures for compared in self.jobs]
        rows = []
        for name in _COMPARED_FIGURES:
            known = [figures[name] for figures in by_job if name in figures]
            values = [figures[name].value if name in figures else None for figures in by_job]
            if any(value is not None for value in values):
                rows.append(
                    (known[0].metric, [(value, _ratio(value, values[0])) for value in values])
                )
        return rows

    @property
    def longest(self) -> ComparedJob:
        """The job with the longest run."""
        return max(self.jobs, key=lambda compared: compared.run.end - compared.run.start)

    def axis(self, compared: ComparedJob) -> ElapsedAxis:
        """Return the axis of a job: of its run, in the unit of all jobs."""
        run = compared.run
        if self.option("align") == "share":
            return ElapsedAxis.share_of_run(run.start, run.end)
        longest = self.longest.run
        common = ElapsedAxis.of_run(longest.start, longest.end)
        end = run.start + (longest.end - longest.start)
        return replace(common, start=run.start, end=end, origin=run.start)


def _ratio(value: float | None, first: float | None) -> float | None:
    return value / first if value is not None and first else None


class Overlay:
    """The rates of all jobs of a page by one quantity, as a chart with table and export."""

    def __init__(self, name: str, page: OverlayPage) -> None:
        title, of = _OVERLAYS[name]
        is_per_node = page.option("per") == "node"
        unit = "ops/s per node" if is_per_node else "ops/s"
        self.chart = Chart(name, title, unit, _FROM_MDTS, Style.LINES, {})
        self._page = page
        steps = [of(compared.series.metadata) for compared in page.jobs]
        nodes = [compared.job.node_count if is_per_node else 1 for compared in page.jobs]
        self._steps = [_per(number, each) for number, each in zip(nodes, steps, strict=True)]

    @property
    def script_id(self) -> str:
        """The id of the element with the figure."""
        return f"figure-overlay-{self.chart.name}"

    @property
    def is_empty(self) -> bool:
        """Whether no job was observed."""
        return all(steps.frame.is_empty() for steps in self._steps)

    @property
    def figure(self) -> Figure:
        """The chart for Plotly."""
        page = self._page
        runs = [
            (compared.name, steps, page.axis(compared))
            for compared, steps in zip(page.jobs, self._steps, strict=True)
        ]
        is_log = page.option("scale") == "log"
        return charts.overlay(self.chart, runs, page.axis(page.longest), log=is_log)

    @property
    def exports_url(self) -> str:
        """The URL of the export, without the format."""
        _, _, query = self._page.address().partition("?")
        return f"{reverse('compare_jobs_chart', args=[self.chart.name])}?{query}"

    @property
    def about(self) -> dict[str, Any]:
        """Members of the JSON export other than rows."""
        jobs = [
            {
                "job_key": compared.job.pk,
                "job": compared.job.display_id,
                "start": compared.run.start,
                "end": compared.run.end,
                "simulated": compared.job.cluster.simulated,
            }
            for compared in self._page.jobs
        ]
        return {"chart": self.chart.title, "unit": self.chart.unit, "jobs": jobs}

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of the export: `HEADER`."""
        for compared, steps in zip(self._page.jobs, self._steps, strict=True):
            run = compared.run
            length_s = (run.end - run.start).total_seconds()
            for start, end, observed, value in steps.frame.iter_rows():
                bounds = [(at - run.start).total_seconds() for at in (start, end)]
                shares = [seconds / length_s for seconds in bounds]
                yield (
                    *(compared.job.pk, compared.job.display_id, *bounds, *shares),
                    *(observed, steps.sources, value),
                )

    @property
    def table(self) -> list[tuple[Any, ...]]:
        """The first rows for the page: job, start, end, rate."""
        return [
            (job, start_s, end_s, value)
            for _, job, start_s, end_s, *_, value in islice(self.rows(), ROWS_SHOWN)
        ]

    @property
    def more_rows(self) -> int:
        """The number of rows that only the exports have."""
        return max(0, sum(steps.frame.height for steps in self._steps) - ROWS_SHOWN)


class Panel(Timeline):
    """Opens and closes of one job, on the scale of all jobs of a page."""

    def __init__(self, compared: ComparedJob, page: OverlayPage) -> None:
        super().__init__(BY_NAME["opens-closes"], compared.series, compared.run)
        self.compared = compared
        self._page = page

    @property
    def script_id(self) -> str:
        """The id of the element with the figure."""
        return f"figure-job-{self.compared.job.pk}"

    @property
    def figure(self) -> Figure:
        """The chart for Plotly."""
        axis = self._page.axis(self.compared)
        drawn = charts.figure(self.chart, self.steps, replace(axis, end=self.compared.run.end))
        return charts.on_common_axes(drawn, axis, self._page.highest)

    @property
    def exports_url(self) -> str:
        """The URL of the export, without the format."""
        run = self.compared.run
        query = urlencode({"start": run.start.isoformat(), "end": run.end.isoformat()})
        address = reverse("job_timeline", args=[self.compared.job.pk, self.chart.name])
        return f"{address}?{query}"
