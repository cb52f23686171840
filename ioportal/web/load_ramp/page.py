"""The load ramp of a URL: selected jobs, the measure of their load, charts and tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import polars as pl
from django.urls import reverse

from ioportal.core import formatting
from ioportal.core.charts.time_axis import drawn_unit
from ioportal.core.charts.timelines import Chart, Style
from ioportal.load import load_ramp_series as load_ramp
from ioportal.load.charts import load_ramp as charts
from ioportal.load.load_ramp_series import LOADS, Population
from ioportal.web.trends.page import ROWS_SHOWN, TrendsPage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioportal.core.charts.time_axis import Figure
    from ioportal.jobs.analysis.trends import Buckets
    from ioportal.load.load_ramp_series import Load, LoadRamp, Relation
    from ioportal.metrics import Metric

_CACHE_VERSION = 3  # to be changed with the classes of `load.load_ramp_series`
BINS_HEADER = (
    *("metric", "unit", "concurrency_from", "concurrency_to", "concurrency", "counted", "count"),
    *("days", "median", "median_low", "median_high"),
)


@dataclass(frozen=True)
class Shown:
    """A metric of the page: two charts, their tables, and the conclusion."""

    relation: Relation
    result: LoadRamp
    buckets: Buckets
    page: LoadRampPage

    @property
    def metric(self) -> Metric:
        """The metric."""
        return self.relation.metric

    @property
    def is_latency(self) -> bool:
        """Whether the metric is of servers, not of jobs."""
        return self.metric == load_ramp.MDS_LATENCY

    @property
    def conclusion(self) -> str:
        """The conclusion of the relation."""
        return load_ramp.conclusion(self.relation, self.page.load)

    @property
    def correlation(self) -> str:
        """The correlation of daily values."""
        return load_ramp.correlation(self.relation)

    @property
    def over_time(self) -> OverTime:
        """The chart over time."""
        return OverTime(self)

    @property
    def scatter(self) -> Scatter:
        """The chart against the concurrency."""
        return Scatter(self)

    def chart(self) -> tuple[Chart, float]:
        """Return the chart in a suitable unit, and the size of the unit."""
        medians = [each for each in self.relation.medians if each is not None]
        size, unit = drawn_unit(self.metric.unit, max(medians, default=0.0))
        chart = Chart(
            self.metric.name,
            self.metric.title,
            unit,
            f"Formula: {self.metric.formula}. {self.metric.caveat}",
            Style.LINES,
            {"median": "median"},
        )
        return chart, size

    def text(self, value: float | None) -> str:
        """Return a value of the metric for a table."""
        return formatting.with_unit(value, self.metric.unit)


@dataclass(frozen=True)
class _Drawn:
    """Common parts of both charts of a metric."""

    shown: Shown
    kind = ""

    @property
    def script_id(self) -> str:
        """The id of the element with the figure."""
        return f"{self.kind}-{self.shown.metric.name}"

    @property
    def is_empty(self) -> bool:
        """Whether no value is known."""
        return not self.shown.relation.ramp.count

    @property
    def _load(self) -> tuple[str, str]:
        return self.shown.page.load.title, self.shown.page.load.unit


class OverTime(_Drawn):
    """A metric and the concurrency over time."""

    kind = "over-time"

    @property
    def figure(self) -> Figure:
        """The chart for Plotly."""
        relation = self.shown.relation
        chart, size = self.shown.chart()
        frame = pl.DataFrame(
            {
                charts.LOAD: self.shown.result.loads,
                "n": relation.counts,
                "median": relation.medians,
            },
            schema={charts.LOAD: pl.Float64, "n": pl.Int64, "median": pl.Float64},
        ).with_columns(pl.col("median") / size)
        marks = self.shown.page.marks
        return charts.over_time(chart, frame, self.shown.buckets, marks, self._load)

    @property
    def table(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the first rows: label, concurrency, number and median."""
        relation = self.shown.relation
        rows = zip(
            self.shown.buckets.labels,
            self.shown.result.loads,
            relation.counts,
            relation.medians,
            strict=True,
        )
        for label, level, count, median in islice(rows, ROWS_SHOWN):
            yield label, [_load_text(level), f"{count:,}", self.shown.text(median)]


class Scatter(_Drawn):
    """A metric against the concurrency."""

    kind = "scatter"

    @property
    def figure(self) -> Figure:
        """The chart for Plotly."""
        chart, size = self.shown.chart()
        relation = self.shown.relation
        drawn = (relation.cells, relation.ramp.bins)
        return charts.scatter(chart, relation.counted, drawn, size, self._load)

    @property
    def above(self) -> int:
        """The number of values that are too high for the chart."""
        return self.shown.relation.cells.above

    @property
    def table(self) -> Iterator[tuple[str, list[str]]]:
        """Yield a row per bin: concurrency, number, days, median and its interval."""
        text = self.shown.text
        for each in self.shown.relation.ramp.bins:
            band = f"{text(each.band.low)} to {text(each.band.high)}" if each.band else ""
            yield (
                f"{formatting.significant(each.low)} to {formatting.significant(each.high)}",
                [
                    f"{each.count:,}",
                    f"{each.days:,}",
                    text(each.median),
                    band or formatting.UNKNOWN,
                ],
            )


def _load_text(level: float | None) -> str:
    return formatting.UNKNOWN if level is None else formatting.significant(level)


class LoadRampPage(TrendsPage):
    """The load ramp of selected jobs."""

    hidden_parameters = ("state", "quality", "unit", "step", "load")
    unit_page = "load_ramp"
    unit_parameters = ("step",)

    @property
    def load(self) -> Load:
        """The measure of the load; an invalid one means the default."""
        loads = LOADS[self.job_kind.name]
        return next((load for load in loads if load.name == self.query.get("load")), loads[0])

    @property
    def loads(self) -> list[tuple[Load, bool]]:
        """The measures to choose from, and whether each is current."""
        return [(load, load is self.load) for load in LOADS[self.job_kind.name]]

    @property
    def errors(self) -> dict[str, list[str]]:
        """Invalid parameters other than filters, and their replacement."""
        name, names = self.query.get("load", ""), [load.name for load, _ in self.loads]
        if not name or name in names:
            return super().errors
        message = f"{name[:64]!r} is not one of {', '.join(names)}. Ignored."
        return {**super().errors, "load": [message]}

    @cached_property
    def result(self) -> LoadRamp | None:
        """The load ramp; None without jobs that ran."""
        buckets = self.buckets
        if buckets is None:
            return None
        cluster = self.filter.form.cleaned_data.get("cluster")
        population = Population(
            self.filtered, self.job_kind, self.offered.records, cluster, self.user.is_staff
        )
        result = self.cached(
            "load-ramp",
            (_CACHE_VERSION, self.load.name, buckets.edges),
            lambda: load_ramp.compute(population, self.load, buckets),
        )
        return None if result.is_empty else result

    @property
    def relations(self) -> list[Shown]:
        """The metrics of the page."""
        result, buckets = self.result, self.buckets
        if result is None or buckets is None:
            return []
        return [Shown(relation, result, buckets, self) for relation in result.relations]

    @cached_property
    def series(self) -> pl.DataFrame:
        """The rows of the export over time, without their interval."""
        if self.result is None:
            return pl.DataFrame()
        columns: dict[str, Any] = {
            "concurrency_mean": self.result.concurrency,
            "load_median": self.result.loads,
        }
        for shown in self.relations:
            columns[f"{shown.metric.name}_n"] = shown.relation.counts
            columns[f"{shown.metric.name}_median"] = shown.relation.medians
        return pl.DataFrame(columns)

    @property
    def series_rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of the export over time."""
        if self.buckets is None:
            return
        for label, bounds, values in zip(
            self.buckets.labels, self.buckets.bounds, self.series.iter_rows(), strict=True
        ):
            yield label, *bounds, *values

    @property
    def bins_rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of the export by concurrency."""
        for shown in self.relations:
            for each in shown.relation.ramp.bins:
                yield (
                    *(shown.metric.name, str(shown.metric.unit)),
                    *(each.low, each.high, each.concurrency, shown.relation.counted, each.count),
                    *(each.days, each.median),
                    *((each.band.low, each.band.high) if each.band else (None, None)),
                )

    @property
    def over_time_url(self) -> str:
        """The URL of the export over time, without the format."""
        return f"{reverse('load_ramp_over_time')}?{self.unit_query('step', 'load')}"

    @property
    def bins_url(self) -> str:
        """The URL of the export by concurrency, without the format."""
        return f"{reverse('load_ramp_bins')}?{self.unit_query('load')}"

    @property
    def trends_url(self) -> str:
        """The URL of the trends of the same jobs."""
        return f"{reverse('trends')}?{self.unit_query()}"
