"""The trends of some jobs as their URL describes them: population, period, buckets, charts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import polars as pl
from django.core.exceptions import ValidationError
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone

from ioportal.analysis import trends
from ioportal.analysis.metrics import Source, Unit
from ioportal.analysis.trends import MOST, Buckets, Step
from ioportal.charts import trends as charts
from ioportal.charts.time_axis import Mark, Meaning
from ioportal.jobs.models import JobStatistics
from ioportal.reporting import formatting
from ioportal.reporting.ranges import TimeRange
from ioportal.site.models import Target
from ioportal.studies import trends as questions
from ioportal.studies.cache import eyes, kept
from ioportal.studies.populations import newest_record
from ioportal.telemetry import coverage
from ioportal.telemetry.models import Coverage
from ioportal.web.common import job_kinds
from ioportal.web.common.selection import ChosenJobs
from ioportal.web.trends.charts import OFFERED, RECORDED, Figures, Offered, chart_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from ioportal.analysis.metrics import Metric
    from ioportal.analysis.timelines import Gap
    from ioportal.charts.time_axis import Figure
    from ioportal.charts.timelines import Chart

MOST_METRICS = 6
ROWS_SHOWN = 100  # of a chart's table on the page; its twins have all
_PERIODS = {"7 days": 7, "30 days": 30, "90 days": 90, "1 year": 365}
_COUNTED = {Source.JOB_STATS, Source.JOB_STATS_MDT}  # what gaps between reads hide
_MOMENT = timedelta(milliseconds=1)
_GAP_BINS = 400  # narrower ones could not be seen


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
    chosen: ChosenJobs
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
        return f"{reverse('trend', args=[self.chart.name])}?{self.chosen.unit_query('step')}"

    def _jobs(self, start: datetime, end: datetime) -> str:
        """Return the address of the jobs that ran in a bucket."""
        begin, stop = (timezone.localtime(at).isoformat() for at in (start, end))
        filters = self.chosen.filters_query(start=begin, end=stop)
        return job_kinds.list_url(self.chosen.counted, filters)

    def _words(self, name: str, value: float | None) -> str:
        if value is not None and (self.unit is None or name == "n"):
            return f"{value:,.0f}" if value == round(value) else formatting.significant(value)
        return formatting.human(value, self.unit or Unit.COUNT)


class Trends(ChosenJobs):
    """The trends of the chosen jobs."""

    carried_on = ("state", "quality", "unit", "step", "metric", "hours", "scale")
    counts_either = "trends"
    kept_by_units = ("step", "scale")

    @cached_property
    def offered(self) -> Offered:
        """What can be drawn of them."""
        return OFFERED[self.counted.name]

    @cached_property
    def known(self) -> TimeRange | None:
        """When the chosen jobs ran; None: there is none that did."""
        found = questions.extent(self.filtered, self.offered.records) if self.is_valid else None
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
        if message := job_kinds.misunderstood(self.query):
            refused["unit"] = [f"{message} It is left out."]
        step = self.query.get("step", "")
        if step and step not in set(Step):
            refused["step"] = [f"There is no step {step[:64]!r}: the fitting one is used."]
        elif step and self.buckets and self.buckets.step != step:
            refused["step"] = [f"More than {MOST:,} steps of one {step}: longer ones are used."]
        known = self.offered.metrics_by_name
        if unknown := [name for name in self._asked_metrics if name not in known]:
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
        known = self.offered.metrics_by_name
        asked = [name for name in self._asked_metrics if name in known]
        return [known[name] for name in (asked or self.offered.first_metrics)[:MOST_METRICS]]

    @property
    def hours(self) -> str:
        """Of what hours are counted: nodes or cores. PanDA jobs have no nodes of their own."""
        is_choice = "node-hours" in self.offered.names
        return "node" if is_choice and self.query.get("hours") != "core" else "core"

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

    @cached_property
    def figures(self) -> Figures | None:
        """What they did; None: there is nothing to draw."""
        buckets = self.buckets
        return Figures(self.filtered, self.offered.records, buckets) if buckets else None

    def charts(self, names: Sequence[str] = ()) -> Iterator[Trend]:
        """Yield charts by their names, or those that the address asks for; none: no job ran."""
        figures = self.figures
        if figures is None:
            return
        names = tuple(names or self._asked_names)
        newest = newest_record(self.counted)
        asked = (eyes(self.user), self.unit_query(), newest, names, figures.buckets.edges)
        frames = kept("trends", asked, lambda: {name: self._frame(name, figures) for name in names})
        for name in names:
            yield self._trend(name, frames[name], figures.buckets)

    @property
    def _asked_names(self) -> Iterator[str]:
        for name in self.offered.kinds_by_name:
            if not name.endswith("-hours") or name.startswith(self.hours):
                yield name
        for metric in self.metrics:
            yield metric.name

    def _frame(self, name: str, figures: Figures) -> pl.DataFrame:
        if kind := self.offered.kinds_by_name.get(name):
            return kind.frame(figures)
        metric = self.offered.metrics_by_name[name]
        return replace(figures, jobs=self._judged(metric)).spread(metric)

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
            self.gaps if metric.source in _COUNTED else [],
            self,
            log=self.is_log,
        )

    def _judged(self, metric: Metric) -> Any:
        """Leave out jobs of which too little was seen, unless the filters ask for them."""
        poor = JobStatistics.Quality.POOR
        if metric.source in RECORDED or poor in self.query.getlist("quality"):
            return self.filtered
        is_poor = Q(quality=poor)
        if metric.source is Source.JOB_STATS:
            is_poor |= Q(statistics__bytes_quality=poor)
        return self.filtered.exclude(is_poor)
