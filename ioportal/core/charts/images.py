"""Timelines as PNG images, for readers without JavaScript: the steps of a page's chart."""

from __future__ import annotations

from datetime import timezone
from io import BytesIO
from typing import TYPE_CHECKING

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from ioportal.core.charts.palette import SERIES
from ioportal.core.charts.time_axis import Meaning

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from matplotlib.axes import Axes

    from ioportal.core.charts.time_axis import Mark, TimeAxis
    from ioportal.core.charts.timelines import Chart
    from ioportal.core.timelines import Steps

_INCHES = (6.0, 2.6)
_DPI = 200  # sharp on screens with two pixels per point
_LIGHT = 0  # of the colours of a token: images have a white background
_MEASURE, _THRESHOLD = SERIES["--series-1"][_LIGHT], SERIES["--series-8"][_LIGHT]
_GREY, _GRID = "#5b6570", "#dde2e7"
_FONT_SIZE = 9


def png(chart: Chart, steps: Steps, axis: TimeAxis, marks: Sequence[Mark] = ()) -> bytes:
    """Return a chart of a measure and its threshold as a PNG image of 1,200 x 520 pixels.

    Args:
        chart: title, unit and labels.
        steps: values in the chart's unit; null values are gaps.
        axis: the range and its local time.
        marks: times to draw as vertical lines; only flags have labels.
    """
    figure = Figure(figsize=_INCHES, dpi=_DPI, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    plot = figure.add_subplot()
    for kind in steps.kinds:
        moments, values = _outline(steps, kind)
        is_threshold = kind == "threshold"
        plot.plot(
            moments,  # type: ignore[arg-type]  # times
            values,
            color=_THRESHOLD if is_threshold else _MEASURE,
            linestyle="--" if is_threshold else "-",
            linewidth=1.4,
            label=chart.labels.get(kind, kind),
        )
    for mark in marks:
        is_flag = mark.meaning is Meaning.FLAG
        plot.axvline(
            mark.at,  # type: ignore[arg-type]  # a time
            color=_THRESHOLD if is_flag else _GREY,
            linewidth=1 if is_flag else 0.8,
            linestyle=":",
        )
    _decorate(plot, chart, axis)
    image = BytesIO()
    figure.savefig(image, format="png", metadata={"Software": "ioportal"})
    return image.getvalue()


def _outline(steps: Steps, kind: str) -> tuple[list[datetime], list[float]]:
    """Return the corners of the steps: two for each."""
    rows = steps.frame.select("start", "end", kind).rows()
    moments = [moment for start, end, _ in rows for moment in (start, end)]
    values = [float("nan") if value is None else value for *_, value in rows for _ in range(2)]
    return moments, values


def _decorate(plot: Axes, chart: Chart, axis: TimeAxis) -> None:
    zone = timezone(axis.offset)
    plot.set_xlim(axis.start, axis.end)  # type: ignore[arg-type]  # times
    plot.set_ylim(bottom=0)
    locator = AutoDateLocator(tz=zone)  # type: ignore[no-untyped-call]
    plot.xaxis.set_major_locator(locator)
    plot.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=zone))  # type: ignore[no-untyped-call]
    plot.yaxis.set_major_formatter(EngFormatter(sep=""))
    plot.tick_params(labelsize=_FONT_SIZE)
    plot.grid(axis="y", color=_GRID, linewidth=0.6)
    plot.spines[["top", "right"]].set_visible(False)
    texts = [
        plot.set_title(chart.title, fontsize=_FONT_SIZE + 1, loc="left"),
        plot.set_ylabel(chart.unit, fontsize=_FONT_SIZE),
        plot.set_xlabel(f"Time ({axis.clock})", fontsize=_FONT_SIZE),
        *plot.legend(fontsize=_FONT_SIZE, frameon=False, loc="best").get_texts(),
    ]
    for text in texts:
        text.set_parse_math(parse_math=False)  # names contain any characters
