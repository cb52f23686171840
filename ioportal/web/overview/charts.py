"""The charts of an overview section: a stack of rates for each source, and its latency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ioportal.core.charts import timelines as charts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ioportal.core.charts.time_axis import Figure, Mark, TimeAxis
    from ioportal.core.charts.timelines import Chart
    from ioportal.core.timelines import Steps


@dataclass(frozen=True)
class LatencyChart:
    """Service and queue time of one source's requests."""

    source: int
    chart: Chart
    steps: Steps
    axis: TimeAxis
    marks: Sequence[Mark]

    @property
    def script_id(self) -> str:
        """The id of the element that carries the figure."""
        return f"figure-{self.chart.name}-{self.source}"

    @property
    def figure(self) -> Figure:
        """The chart for Plotly."""
        return charts.figure(self.chart, self.steps, self.axis, self.marks)


@dataclass(frozen=True)
class SourceChart:
    """Rates of the busiest principals on one source.

    Args:
        source: primary key of a server or target.
        name: its name.
        script_id: the id of the element that carries the figure.
        chart: what is drawn.
        steps: the rates, by layer.
        axis: the range.
        marks: of the range.
        links: addresses of layers; a click on a job opens its page.
        latency: of its requests; None: unknown for targets.
    """

    source: int
    name: str
    script_id: str
    chart: Chart
    steps: Steps
    axis: TimeAxis
    marks: Sequence[Mark]
    links: Mapping[str, str]
    latency: LatencyChart | None

    @property
    def figure(self) -> Figure:
        """The chart for Plotly."""
        return charts.figure(self.chart, self.steps, self.axis, self.marks, links=self.links)
