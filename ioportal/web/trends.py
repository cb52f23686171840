"""The trends of some jobs as their URL describes them: population, period, buckets, charts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import polars as pl
from django.core.exceptions import ValidationError
from django.urls import reverse
from django.utils import timezone

from ioportal.analysis import metrics, trends
from ioportal.analysis.metrics import Source, Unit
from ioportal.analysis.trends import MOST, Buckets, Step
from ioportal.charts import trends as charts
from ioportal.charts.time_axis import Mark, Meaning
from ioportal.charts.timelines import Chart, Style
from ioportal.jobs import trends as questions
from ioportal.jobs.kept import eyes, kept
from ioportal.jobs.models import JobStatistics, Target
from ioportal.telemetry import coverage
from ioportal.telemetry.models import Coverage
from ioportal.web import formatting
from ioportal.web.chosen import ChosenJobs
from ioportal.web.ranges import TimeRange

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from django.contrib.auth.models import User
    from django.http import QueryDict

    from ioportal.analysis.metrics import Metric
    from ioportal.analysis.timelines import Gap
    from ioportal.charts.time_axis import Figure
    from ioportal.jobs.models import JobQuerySet
    from ioportal.jobs.trends import Row

DEFAULT_METRICS = ("metadata_operations", "duration_s")
MOST_METRICS = 6
ROWS_SHOWN = 100  # of a chart's table on the page; its twins have all
_PERIODS = {"7 days": 7, "30 days": 30, "90 days": 90, "1 year": 365}
_COUNTED = {Source.JOB_STATS, Source.JOB_STATS_MDT}  # what gaps between reads hide
_MOMENT = timedelta(milliseconds=1)
_GAP_BINS = 400  # narrower ones could not be seen
_MEAN_AND_PEAK = "The mean over each bucket, and the most at any moment in it."
_HOURS = "{things} of each allocation, times the hours of its run that lie in the bucket."


@dataclass(frozen=True, eq=False)
class Question:
    """What the database is asked: for the rows of all buckets at once, and what these have."""

    rows: Callable[[JobQuerySet, Buckets], Iterator[Row]]
    columns: dict[str, type[float]]


_ENDED = Question(questions.outcomes, questions.ENDED)
_USE = Question(questions.use, questions.USE)


@dataclass(frozen=True)
class Kind:
    """A chart about jobs and what they used: with every population, and of no one metric."""

    chart: Chart
    question: Question


KINDS = (
    Kind(
        Chart(
            "jobs-ended",
            "Jobs that ended",
            "jobs",
            "By how they ended, as accounting has it.",
            Style.STACK,
            {
                "completed": "completed",
                "failed": "failed",
                "timeout": "timed out",
                "cancelled": "cancelled or preempted",
                "other": "otherwise",
            },
        ),
        _ENDED,
    ),
    Kind(
        Chart(
            "node-hours",
            "Node-hours",
            "node-hours",
            _HOURS.format(things="Nodes"),
            Style.STACK,
            {"node_hours": "node-hours"},
        ),
        _USE,
    ),
    Kind(
        Chart(
            "core-hours",
            "Core-hours",
            "core-hours",
            _HOURS.format(things="Cores"),
            Style.STACK,
            {"core_hours": "core-hours"},
        ),
        _USE,
    ),
    Kind(
        Chart(
            "running-jobs",
            "Running jobs",
            "jobs",
            _MEAN_AND_PEAK,
            Style.LINES,
            {"jobs_mean": "mean", "jobs_peak": "peak"},
        ),
        _USE,
    ),
    Kind(
        Chart(
            "nodes-in-use",
            "Nodes in use",
            "nodes",
            f"{_MEAN_AND_PEAK} A node that several jobs share counts for each.",
            Style.LINES,
            {"nodes_mean": "mean", "nodes_peak": "peak"},
        ),
        _USE,
    ),
)
KINDS_BY_NAME = {kind.chart.name: kind for kind in KINDS}
NAMES = KINDS_BY_NAME.keys() | metrics.BY_NAME.keys()


def chart_of(metric: Metric) -> Chart:
    """Return the chart of a metric's spread."""
    left_out = "" if metric.source is Source.ACCOUNTING else ", but those of poor data"
    return Chart(
        metric.name,
        metric.title,
        str(metric.unit),
        f"{metric.formula} ({metric.source}). Of all jobs that began in each bucket{left_out}.",
        Style.LINES,
        {"median": "median", "p90": "90 % are below"},
    )


@dataclass(frozen=True)
class Trend:
    """One chart, its table and twins.

    `unit` and `frame` are exact; the chart may draw them in another unit.
    """

    chart: Chart
    unit: Unit | None  # None: a count of something that is no metric
    frame: pl.DataFrame
    buckets: Buckets
    marks: list[Mark]
    gaps: list[Gap]
    query: Callable[..., str]  # of these jobs in these buckets, for the addresses of other pages
    log: bool = False

    @property
    def script_id(self) -> str:
        """The id of the element that carries the figure."""
        return f"figure-{self.chart.name}"

    @property
    def is_empty(self) -> bool:
        """Whether nothing at all is known."""
        return not any(self.frame[kind].sum() for kind in self.chart.labels)

    @property
    def figure(self) -> Figure:
        """The chart for Plotly."""
        size, unit = 1.0, self.chart.unit
        if self.unit:
            highest = charts.highest_of(self.frame, self.chart.labels)
            size, unit = charts.drawn_unit(self.unit, highest)
        chart = replace(self.chart, unit=unit)
        drawn = self.frame.with_columns(pl.col(list(self.chart.labels)) / size)
        return charts.figure(chart, drawn, self.buckets, self.marks, self.gaps, log=self.log)

    @property
    def columns(self) -> list[str]:
        """The names of the values."""
        return self.frame.columns

    @property
    def labels(self) -> list[str]:
        """The heads of the table's columns."""
        return [self.chart.labels.get(name, "jobs") for name in self.columns]

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of its twins: label, start, end, exact values."""
        bounds = self.buckets.bounds
        for label, bound, values in zip(
            self.buckets.labels, bounds, self.frame.iter_rows(), strict=True
        ):
            yield label, *bound, *values

    @property
    def table(self) -> list[tuple[str, str, list[str]]]:
        """The first rows for people: label, query of the jobs, values."""
        return [
            (label, self._jobs(start, end), list(map(self._words, self.columns, values)))
            for label, start, end, *values in islice(self.rows(), ROWS_SHOWN)
        ]

    @property
    def more_rows(self) -> int:
        """Rows that the page's table leaves to the twins."""
        return max(0, len(self.buckets) - ROWS_SHOWN)

    @property
    def twin(self) -> str:
        """The address of its twins, but for the format."""
        return f"{reverse('trend', args=[self.chart.name])}?{self.query('step')}"

    def _jobs(self, start: datetime, end: datetime) -> str:
        """Return the address of the jobs that ran in a bucket."""
        begin, stop = (timezone.localtime(at).isoformat() for at in (start, end))
        return f"{reverse('job_list')}?{self.query(start=begin, end=stop)}"

    def _words(self, name: str, value: float | None) -> str:
        if value is not None and (self.unit is None or name == "n"):
            return f"{value:,.0f}" if value == round(value) else formatting.significant(value)
        return formatting.human(value, self.unit or Unit.COUNT)


class Trends(ChosenJobs):
    """The trends of the chosen jobs."""

    carried_on = ("state", "quality", "step", "metric", "hours", "scale")

    def __init__(self, user: User, query: QueryDict, only: dict[str, str] | None = None) -> None:
        super().__init__(user, query, only)
        self._user = user

    @cached_property
    def known(self) -> TimeRange | None:
        """When the chosen jobs ran; None: there is none that did."""
        found = questions.extent(self.filtered) if self.is_valid else None
        if found is None:
            return None
        start, end = found
        return TimeRange(start, end + _MOMENT)  # half-open: what ended last is part of it

    @cached_property
    def _window(self) -> tuple[TimeRange | None, list[str]]:
        if self.known is None:
            return None, []
        try:
            return TimeRange.from_query(self.query, self.known), []
        except ValidationError as error:
            return self.known, error.messages

    @property
    def window(self) -> TimeRange | None:
        """The period."""
        return self._window[0]

    @cached_property
    def buckets(self) -> Buckets | None:
        """What the period is cut into; None: there is nothing to cut."""
        if self.window is None:
            return None
        start, end = self.window.start, self.window.end
        step = trends.step_for(start, end)
        asked = self.query.get("step")
        if asked in set(Step):
            step = max(Step(asked), trends.step_for(start, end, MOST), key=list(Step).index)
        return trends.buckets(start, end, step, timezone.get_current_timezone())

    @property
    def refused(self) -> dict[str, list[str]]:
        """What is wrong with the parameters beside the filters, and what is done about it."""
        refused: dict[str, list[str]] = {}
        if messages := self._window[1]:
            refused["start"] = [f"{message} All of the time is shown." for message in messages]
        step = self.query.get("step", "")
        if step and step not in set(Step):
            refused["step"] = [f"There is no step {step[:64]!r}: the fitting one is used."]
        elif step and self.buckets and self.buckets.step != step:
            refused["step"] = [f"More than {MOST:,} steps of one {step}: longer ones are used."]
        if unknown := [name for name in self._asked_metrics if name not in metrics.BY_NAME]:
            refused["metric"] = [f"There is no metric {unknown[0][:64]!r}: it is left out."]
        elif len(self._asked_metrics) > MOST_METRICS:
            refused["metric"] = [f"More than {MOST_METRICS} metrics: the first of them are drawn."]
        return refused

    @property
    def _asked_metrics(self) -> list[str]:
        return [name for name in dict.fromkeys(self.query.getlist("metric")) if name]

    @property
    def metrics(self) -> list[Metric]:
        """The metrics that are drawn."""
        asked = [name for name in self._asked_metrics if name in metrics.BY_NAME]
        return [metrics.BY_NAME[name] for name in (asked or DEFAULT_METRICS)[:MOST_METRICS]]

    @property
    def hours(self) -> str:
        """Of what hours are counted: nodes or cores."""
        return "core" if self.query.get("hours") == "core" else "node"

    @property
    def is_log(self) -> bool:
        """Whether metrics stand on a logarithmic axis."""
        return self.query.get("scale") == "log"

    @property
    def offset(self) -> str:
        """The offset of the charts' clock; "": that of the site's zone at each moment."""
        by_hours = self.buckets and self.buckets.step is Step.HOUR
        return self.window.offset if self.window and by_hours else ""

    @property
    def periods(self) -> Iterator[tuple[str, str, bool]]:
        """Yield periods to choose: their names, where they begin, whether one is shown.

        They end with the newest job, which may be long ago.
        """
        if self.known is None or self.window is None:
            return
        for name, days in _PERIODS.items():
            start = (self.known.end - timedelta(days=days)).replace(microsecond=0)
            is_shown = self.window.asked and self.window.start == start
            yield name, timezone.localtime(start).isoformat(), is_shown

    @property
    def beside_metrics(self) -> list[tuple[str, list[str]]]:
        """What the form of metrics carries on: everything else that the URL says."""
        return [(name, values) for name, values in self.query.lists() if name != "metric"]

    most_metrics = MOST_METRICS

    @cached_property
    def marks(self) -> list[Mark]:
        """Upgrades of servers in the period."""
        if self.window is None:
            return []
        found = questions.upgrades(self.window.start, self.window.end)
        return [Mark(at, text, Meaning.BREAK) for at, text in found]

    @cached_property
    def gaps(self) -> list[Gap]:
        """When the counters of the MDTs were not read; none at all: never."""
        if self.window is None:
            return []
        start, end = self.window.start, self.window.end
        mdts = {mdt.pk: mdt.poll_gap for mdt in Target.objects.filter(kind=Target.Kind.MDT)}
        width = max([(end - start) / _GAP_BINS, *mdts.values()])
        count = -(-(end - start) // width)
        reads = coverage.read_in_bins(Coverage.Source.JOB_STATS, mdts.keys(), start, width, count)
        edges = [min(end, start + number * width) for number in range(count + 1)]
        return trends.not_read(reads, edges)

    def charts(self) -> Iterator[Trend]:
        """Yield the charts of the page; none where no job ran."""
        if self.buckets is None:
            return
        other_hours = "node-hours" if self.hours == "core" else "core-hours"
        names = [*KINDS_BY_NAME, *(metric.name for metric in self.metrics)]
        names.remove(other_hours)
        yield from self.charts_of(names, self.buckets)

    def charts_of(self, names: Sequence[str], buckets: Buckets) -> Iterator[Trend]:
        """Yield charts by some of `NAMES`."""
        asked = (eyes(self._user), self.filters_query(), names, buckets.edges)
        rows = kept("trends", asked, lambda: self._rows(names, buckets))
        for name in names:
            metric = metrics.BY_NAME.get(name)
            yield (
                self._of_metric(metric, rows[name], buckets)
                if metric
                else self._of_jobs(KINDS_BY_NAME[name], rows[name], buckets)
            )

    def _rows(self, names: Sequence[str], buckets: Buckets) -> dict[str, list[Row]]:
        """Ask for the rows of some charts; those with the same question share them."""
        asked = {name: KINDS_BY_NAME[name].question for name in names if name in KINDS_BY_NAME}
        answers = {
            question: list(question.rows(self.filtered, buckets)) for question in {*asked.values()}
        }
        spread_of = [metrics.BY_NAME[name] for name in names if name not in asked]
        return {name: answers[question] for name, question in asked.items()} | {
            metric.name: list(questions.spread(self._judged(metric), metric, buckets))
            for metric in spread_of
        }

    def _of_jobs(self, kind: Kind, rows: list[Row], buckets: Buckets) -> Trend:
        frame = trends.table(rows, kind.question.columns, len(buckets), 0)
        shown = frame.select(kind.chart.labels.keys())
        return Trend(kind.chart, None, shown, buckets, self.marks, [], self.filters_query)

    def _of_metric(self, metric: Metric, rows: list[Row], buckets: Buckets) -> Trend:
        return Trend(
            chart_of(metric),
            metric.unit,
            trends.table(rows, questions.SPREAD, len(buckets), None),
            buckets,
            self.marks,
            self.gaps if metric.source in _COUNTED else [],
            self.filters_query,
            log=self.is_log,
        )

    def _judged(self, metric: Metric) -> JobQuerySet:
        """Leave out jobs of which too little was seen, unless the filters ask for them."""
        jobs: JobQuerySet = self.filtered
        if metric.source is Source.ACCOUNTING or self.query.get("quality"):
            return jobs
        return jobs.exclude(quality=JobStatistics.Quality.POOR)
