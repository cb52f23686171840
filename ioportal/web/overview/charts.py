"""The charts of an overview section: a stack of rates for each source, and its latency."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ioportal.core.charts import timelines as charts

if TYPE_CHECKING:
    from ioportal.core.charts.time_axis import Figure
    from ioportal.core.charts.timelines import Chart
    from ioportal.core.timelines import Steps
    from ioportal.web.overview.section import Section


@dataclass(frozen=True)
class LatencyChart:
    """Service and queue time of one source's requests."""

    section: Section
    source: int
    chart: Chart
    steps: Steps

    @property
    def script_id(self) -> str:
        """The id of the element that carries the figure."""
        return f"figure-{self.chart.name}-{self.source}"

    @property
    def figure(self) -> Figure:
        """The chart for Plotly."""
        section = self.section
        return charts.figure(self.chart, self.steps, section.window.axis, section.marks)


@dataclass(frozen=True)
class SourceChart:
    """Rates of the busiest principals on one source."""

    section: Section
    source: int
    name: str

    @property
    def steps(self) -> Steps:
        """The rates, by layer."""
        return self.section.steps(self.source)

    @property
    def script_id(self) -> str:
        """The id of the element that carries the figure."""
        return f"figure-{self.section.name}-{self.source}"

    @property
    def figure(self) -> Figure:
        """The chart for Plotly; a click on a job opens its page."""
        section = self.section
        chart = replace(section.chart, colours=lambda names: {n: section.colours[n] for n in names})
        links = {layer.name: layer.address for layer in section.layers if layer.address}
        return charts.figure(chart, self.steps, section.window.axis, section.marks, links=links)

    @property
    def latency(self) -> LatencyChart | None:
        """The latency of its requests; None: unknown for targets."""
        return self.section.latency(self.source)
