"""Figures of the load ramp: a metric and the concurrency over time, and against each other."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

from ioportal.core.charts.axes import FONT_SIZE, axis_title, plotly_text
from ioportal.core.charts.time_axis import number_format
from ioportal.jobs.charts import trends

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from ioportal.core.charts.time_axis import Figure, Mark
    from ioportal.core.charts.timelines import Chart
    from ioportal.jobs.analysis.trends import Buckets
    from ioportal.load.analysis.load_ramp import Bin, Cells

LOAD = "load"  # column
_HEIGHT = 320
_SMALLEST, _LARGEST = 3.0, 15.0  # diameters of points in pixels
_ROOM = 1.05  # end of an axis / highest value
_RIGHT = 72  # margin of the second axis
_MIDDLE = "hvh"  # steps change in the middle between two points


def over_time(
    chart: Chart,
    frame: pl.DataFrame,
    buckets: Buckets,
    marks: Sequence[Mark],
    load: tuple[str, str],
) -> Figure:
    """Draw a metric as a line over the concurrency, which is a shaded area with its own axis.

    Args:
        chart: content of the metric.
        frame: a row per bucket: the chart's labels, ``n`` and ``load``.
        buckets: bounds of the rows.
        marks: times to draw as vertical lines.
        load: title and unit of the concurrency.
    """
    figure = trends.figure(chart, frame, buckets, marks)
    title, unit = load
    layout = figure["layout"]
    lines = [{**line, "yaxis": "y2"} for line in figure["data"]]
    levels = frame[LOAD].to_list()
    area = {
        "type": "scatter",
        "mode": "lines",
        "name": plotly_text(title),
        "x": lines[0]["x"],
        "y": levels,
        "line": {"color": "--ink-soft", "width": 1, "shape": _MIDDLE},
        "fill": "tozeroy",
        "fillcolor": "--series-rest/0.25",
        "hovertemplate": f"%{{y:,.3~g}} {unit}",
    }
    behind = {
        "title": axis_title(title, unit),
        "side": "right",
        "rangemode": "tozero",
        "fixedrange": True,
        "tickformat": number_format(trends.highest_of(frame, [LOAD]), unit),
        "nticks": 5,
        "showgrid": False,
        "zeroline": False,
    }
    return {
        "data": [area, *lines],
        "layout": {
            **layout,
            "margin": {**layout["margin"], "r": _RIGHT},
            "yaxis": behind,
            "yaxis2": {**layout["yaxis"], "side": "left", "overlaying": "y", "tickmode": "auto"},
        },
    }


def scatter(
    chart: Chart,
    counted: str,
    relation: tuple[Cells, Sequence[Bin]],
    size: float,
    load: tuple[str, str],
) -> Figure:
    """Draw a metric against the concurrency: joined points, medians of bins and their band.

    Args:
        chart: content of the metric; `unit` is the unit of the drawn values.
        counted: plural of the points.
        relation: joined points, whose area grows with their number; and bins.
        size: the unit of the drawn values, in units of the values.
        load: title and unit of the concurrency.
    """
    points, bins = relation
    title, unit = load
    values = (points.values / size).tolist()
    # A wide band would compress the points: it is cut off.
    highest = max([*values, *(each.median / size for each in bins)], default=0.0)
    rightmost = max([each.high for each in bins], default=1.0)
    number = f",.4~{number_format(highest, chart.unit)[-1]}"
    most = max(points.counts.tolist(), default=1)
    return {
        "data": [
            {
                "type": "scatter",
                "mode": "markers",
                "name": plotly_text(counted),
                "x": points.loads.tolist(),
                "y": values,
                "customdata": points.counts.tolist(),
                "marker": {
                    "color": "--series-1/0.35",
                    "size": [
                        max(_SMALLEST, _LARGEST * sqrt(count / most)) for count in points.counts
                    ],
                    "line": {"width": 0},
                },
                "hovertemplate": f"%{{x:,.3~g}} {unit}, %{{y:{number}}} {chart.unit}: "
                "%{customdata:,}<extra></extra>",
            },
            *_band(bins, size),
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": "median",
                "x": [each.concurrency for each in bins],
                "y": [each.median / size for each in bins],
                "customdata": [[each.count, each.days] for each in bins],
                "line": {"color": "--series-2", "width": 2},
                "marker": {"size": 6, "symbol": "diamond"},
                "hovertemplate": f"median %{{y:{number}}} {chart.unit} at %{{x:,.3~g}} {unit} "
                "(%{customdata[0]:,} on %{customdata[1]} days)<extra></extra>",
            },
        ],
        "layout": {
            "height": _HEIGHT,
            "margin": {"l": 78, "r": 12, "t": 30, "b": 58},
            "hovermode": "closest",
            "dragmode": False,
            "showlegend": True,
            "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
            "xaxis": {
                **_AXIS,
                "title": {"text": f"{title}", "font": {"size": FONT_SIZE}},
                "range": [0, _ROOM * rightmost],
                "tickformat": ",~g",
                "linecolor": "--line-strong",
                "ticks": "outside",
                "tickcolor": "--line-strong",
            },
            "yaxis": {
                **_AXIS,
                "title": axis_title(chart.title, chart.unit),
                "range": [0, _ROOM * highest or 1],
                "tickformat": number_format(highest, chart.unit),
                "nticks": 5,
                "zerolinecolor": "--line-strong",
            },
        },
    }


_AXIS = {"fixedrange": True, "gridcolor": "--line"}


def _band(bins: Sequence[Bin], size: float) -> list[Figure]:
    """Return the band as two invisible lines with the area between them."""
    banded = [(each.concurrency, each.band) for each in bins if each.band]
    line = {
        "type": "scatter",
        "mode": "lines",
        "x": [at for at, _ in banded],
        "line": {"width": 0, "color": "--series-2"},
        "hoverinfo": "skip",
    }
    return [
        {**line, "y": [max(band.low, 0.0) / size for _, band in banded], "showlegend": False},
        {
            **line,
            "y": [band.high / size for _, band in banded],
            "name": "95 % interval",
            "fill": "tonexty",
            "fillcolor": "--series-2/0.2",
        },
    ]
