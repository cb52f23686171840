"""The trends page: charts of selected jobs over time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl
from django.urls import reverse
from django.utils import timezone

from ioportal.changes import mitigation_marks
from ioportal.core import formatting
from ioportal.core.charts.time_axis import Mark, Meaning, drawn_unit
from ioportal.core.time_ranges import TimeRange
from ioportal.core.times import ALL, RECENT
from ioportal.core.units import Unit
from ioportal.jobs import trends as questions
from ioportal.jobs.analysis import trends
from ioportal.jobs.analysis.trends import MAX_BUCKETS, Buckets, Step
from ioportal.jobs.cache import cached
from ioportal.jobs.charts import trends as charts
from ioportal.jobs.models import JobStatistics
from ioportal.jobs.populations.selections import figures_version
from ioportal.jobs.visibility import visibility_key
from ioportal.web.common import job_kinds
from ioportal.web.common.selection import SelectedJobs
from ioportal.web.trends.charts import OFFERED, Figures, Offered, chart_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ioportal.core.charts.time_axis import Figure
    from ioportal.core.charts.timelines import Chart
    from ioportal.core.timelines import Gap
    from ioportal.metrics import Metric

_Result = TypeVar("_Result")
MOST_METRICS = 6
ROWS_SHOWN = 100  # in the table of a page; exports have all
DEFAULT = "90d"  # value of the parameter `last`
_MOMENT, _SECOND = timedelta(milliseconds=1), timedelta(seconds=1)


@dataclass(frozen=True)
class Trend:
    """One chart, its table and export.

    `frame` has exact values in `unit`; the chart may scale them.
    """

    chart: Chart
    unit: Unit | None  # None: a count that is not a metric
    frame: pl.DataFrame
    buckets: Buckets
    marks: list[Mark]
    gaps: list[Gap]
    selected: TrendsPage
    log: bool = False

    @property
    def script_id(self) -> str:
        """The id of the element with the figure."""
        return f"figure-{self.chart.name}"

    @property
    def is_empty(self) -> bool:
        """Whether all values are zero or unknown."""
        return not any(self.frame[kind].sum() for kind in self.chart.labels)

    @property
    def figure(self) -> Figure:
        """The chart for Plotly."""
        size, unit = 1.0, self.chart.unit
        if self.unit:
            highest = charts.highest_of(self.frame, self.chart.labels)
            size, unit = drawn_unit(self.unit, highest)
        chart = replace(self.chart, unit=unit)
        drawn = self.frame.with_columns(pl.col(list(self.chart.labels)) / size)
        return charts.figure(chart, drawn, self.buckets, self.marks, self.gaps, log=self.log)

    @property
    def columns(self) -> list[str]:
        """The names of the values."""
        return self.frame.columns

    @property
    def labels(self) -> list[str]:
        """Column headings of the table."""
        return [self.chart.labels.get(name, "jobs") for name in self.columns]

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of the export: label, start, end, exact values."""
        bounds = self.buckets.bounds
        for label, bound, values in zip(
            self.buckets.labels, bounds, self.frame.iter_rows(), strict=True
        ):
            yield label, *bound, *values

    @property
    def table(self) -> list[tuple[str, str, list[str]]]:
        """The first rows for the page: label, URL of the jobs, values."""
        return [
            (label, url, list(map(self._text, self.columns, values)))
            for url, (label, _, _, *values) in zip(
                self.selected.jobs_urls, islice(self.rows(), ROWS_SHOWN), strict=True
            )
        ]

    @property
    def more_rows(self) -> int:
        """The number of rows that only the exports have."""
        return max(0, len(self.buckets) - ROWS_SHOWN)

    def marked(self, meaning: Meaning) -> list[dict[str, Any]]:
        """Return the marks of one meaning for exports."""
        return [
            {"at": mark.at, "what": mark.text} for mark in self.marks if mark.meaning is meaning
        ]

    @property
    def exports_url(self) -> str:
        """The URL of the export, without the format."""
        # Exports refuse a step that pages replace.
        step = {"step": self.buckets.step.value} if "step" in self.selected.query else {}
        return f"{reverse('trend', args=[self.chart.name])}?{self.selected.unit_query(**step)}"

    def _text(self, name: str, value: float | None) -> str:
        if value is not None and (self.unit is None or name == "n"):
            return f"{value:,.0f}" if value == round(value) else formatting.significant(value)
        return formatting.human(value, self.unit or Unit.COUNT)


class TrendsPage(SelectedJobs):
    """Charts of selected jobs over time."""

    hidden_parameters: tuple[str, ...] = (
        *("state", "quality", "unit", "step", "metric", "hours", "scale"),
    )
    unit_page = "trends"
    unit_parameters: tuple[str, ...] = ("step", "scale")

    @cached_property
    def offered(self) -> Offered:
        """Available charts."""
        return OFFERED[self.job_kind.name]

    @cached_property
    def extent(self) -> TimeRange | None:
        """The time of all runs; None without runs."""
        if not self.is_valid:
            return None
        extent = self.cached(
            "extent", (), lambda: questions.extent(self.filtered, self.offered.records)
        )
        if extent is None:
            return None
        start, end = extent
        # Whole seconds; half-open, includes the last end.
        return TimeRange(start.replace(microsecond=0), end.replace(microsecond=0) + _SECOND)

    @cached_property
    def window(self) -> TimeRange | None:
        """The period; None without runs. By default, it is the latest part of the runs."""
        if self.extent is None:
            return None
        period, extent = self.period, self.extent
        if period.start or period.end:
            start, end = period.start or extent.start, period.end or extent.end
            end = max(end, start + _MOMENT)  # the end of a running job is unknown
            return TimeRange(start, end, not period.last, period.last)
        if self.query.get("last") == ALL:
            return replace(extent, last=ALL)
        return self._default(extent)

    def _default(self, extent: TimeRange) -> TimeRange:
        return replace(extent, start=max(extent.start, extent.end - RECENT[DEFAULT]), last=DEFAULT)

    @cached_property
    def buckets(self) -> Buckets | None:
        """Intervals of the period; None without a period."""
        if self.window is None:
            return None
        start, end = self.window.start, self.window.end
        step = trends.step_for(start, end)
        requested = self.query.get("step")
        if requested in set(Step):
            step = max(
                Step(requested), trends.step_for(start, end, MAX_BUCKETS), key=list(Step).index
            )
        return trends.buckets(start, end, step, timezone.get_current_timezone())

    @cached_property
    def jobs_urls(self) -> list[str]:
        """The URLs of the jobs that ran in each of the first buckets, for the tables."""
        bounds = islice(self.buckets.bounds, ROWS_SHOWN) if self.buckets else ()
        return [
            job_kinds.list_url(
                self.job_kind,
                self.filters_query(
                    start=timezone.localtime(start).isoformat(),
                    end=timezone.localtime(end).isoformat(),
                ),
            )
            for start, end in bounds
        ]

    @property
    def errors(self) -> dict[str, list[str]]:
        """Invalid parameters other than filters, and their replacement."""
        errors: dict[str, list[str]] = {}
        if message := job_kinds.unit_error(self.query):
            errors["unit"] = [f"{message} Ignored."]
        step = self.query.get("step", "")
        if step and step not in set(Step):
            errors["step"] = [f"Unknown step {step[:64]!r}. A suitable one is used."]
        elif step and self.buckets and self.buckets.step != step:
            errors["step"] = [f"More than {MAX_BUCKETS:,} steps by {step}. Longer steps are used."]
        metrics = self.offered.metrics_by_name
        if unknown := [name for name in self._requested_metrics if name not in metrics]:
            errors["metric"] = [f"Unknown metric {unknown[0][:64]!r}. Ignored."]
        elif len(self._requested_metrics) > MOST_METRICS:
            errors["metric"] = [
                f"More than {MOST_METRICS} metrics. The first {MOST_METRICS} are shown."
            ]
        return errors

    @property
    def _requested_metrics(self) -> list[str]:
        return [name for name in dict.fromkeys(self.query.getlist("metric")) if name]

    @property
    def metrics(self) -> list[Metric]:
        """The metrics of the charts."""
        metrics = self.offered.metrics_by_name
        requested = [name for name in self._requested_metrics if name in metrics]
        return [metrics[name] for name in (requested or self.offered.first_metrics)[:MOST_METRICS]]

    @property
    def hours(self) -> str:
        """Node-hours or core-hours; PanDA jobs have core-hours only."""
        is_choice = "node-hours" in self.offered.names
        return "node" if is_choice and self.query.get("hours") != "core" else "core"

    @property
    def is_log(self) -> bool:
        """Whether metrics have a logarithmic axis."""
        return self.query.get("scale") == "log"

    @property
    def offset(self) -> str:
        """The UTC offset of the charts' clock; "": the offset of the site's zone at each time."""
        by_hours = self.buckets and self.buckets.step is Step.HOUR
        return self.window.offset if self.window and by_hours else ""

    @property
    def other_parameters(self) -> list[tuple[str, list[str]]]:
        """Hidden fields of the metric form: the other parameters of the URL."""
        return [(name, values) for name, values in self.query.lists() if name != "metric"]

    most_metrics = MOST_METRICS

    @cached_property
    def marks(self) -> list[Mark]:
        """Mitigations and server upgrades in the period."""
        if self.window is None:
            return []
        upgrades = questions.upgrades(self.window.start, self.window.end)
        return [
            *(Mark(at, text, Meaning.BREAK) for at, text in upgrades),
            *mitigation_marks.for_populations([self.unit_query()], self.window, self.user),
        ]

    @cached_property
    def gaps(self) -> list[Gap]:
        """Intervals without reads of MDT counters."""
        return questions.unread(self.window.start, self.window.end) if self.window else []

    @cached_property
    def figures(self) -> Figures | None:
        """Values of the charts; None without a period."""
        buckets = self.buckets
        return Figures(self.filtered, self.offered.records, buckets) if buckets else None

    def charts(self, names: Sequence[str] = ()) -> Iterator[Trend]:
        """Yield charts by name, or the charts of the URL; none without runs."""
        figures = self.figures
        if figures is None:
            return
        names = tuple(names or self._requested_names)
        frames = self.cached(
            "trends",
            (names, figures.buckets.edges),
            lambda: {name: self._frame(name, figures) for name in names},
        )
        for name in names:
            yield self._trend(name, frames[name], figures.buckets)

    def cached(self, name: str, key: tuple[object, ...], compute: Callable[[], _Result]) -> _Result:
        """Return a cached result over the selected jobs."""
        return cached(
            name,
            (visibility_key(self.user), self.unit_query(), *key),
            compute,
            lambda: figures_version(self.job_kind),
        )

    @property
    def _requested_names(self) -> Iterator[str]:
        for name in self.offered.kinds_by_name:
            if not name.endswith("-hours") or name.startswith(self.hours):
                yield name
        for metric in self.metrics:
            yield metric.name

    def _frame(self, name: str, figures: Figures) -> pl.DataFrame:
        if kind := self.offered.kinds_by_name.get(name):
            return kind.frame(figures)
        metric = self.offered.metrics_by_name[name]
        return replace(figures, jobs=self._reliable_jobs(metric)).spread(metric)

    def _trend(self, name: str, frame: pl.DataFrame, buckets: Buckets) -> Trend:
        if kind := self.offered.kinds_by_name.get(name):
            return Trend(kind.chart, kind.unit, frame, buckets, self.marks, [], self)
        metric = self.offered.metrics_by_name[name]
        return Trend(
            chart_of(metric),
            metric.unit,
            frame,
            buckets,
            self.marks,
            self.gaps if metric.is_counted else [],
            self,
            log=self.is_log,
        )

    def _reliable_jobs(self, metric: Metric) -> Any:
        """Exclude jobs with poor data, unless the filters include them."""
        if JobStatistics.Quality.POOR in self.query.getlist("quality"):
            return self.filtered
        return self.filtered.exclude(questions.poor(metric))
