"""Figures of the load ramp: a metric and the concurrency over time, and against each other."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

from ioportal.charts import trends
from ioportal.charts.labels import FONT_SIZE, axis_title
from ioportal.charts.time_axis import number_format

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from ioportal.analysis.load_ramp import Bin, Cells
    from ioportal.analysis.trends import Buckets
    from ioportal.charts.time_axis import Figure, Mark
    from ioportal.charts.timelines import Chart

CONCURRENCY = "concurrency"  # column
_HEIGHT = 320
_SMALLEST, _LARGEST = 3.0, 15.0  # diameters of points in pixels
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
        frame: a row per bucket: the chart's labels, ``n`` and ``concurrency``.
        buckets: bounds of the rows.
        marks: times to draw as vertical lines.
        load: title and unit of the concurrency.
    """
    figure = trends.figure(chart, frame, buckets, marks)
    title, unit = load
    line = figure["data"][0]
    levels = frame[CONCURRENCY]
    highest = float(levels.fill_null(0).max())  # type: ignore[arg-type]
    area = {
        "type": "scatter",
        "mode": "lines",
        "name": title,
        "x": line["x"],
        "y": levels.to_list(),
        "yaxis": "y2",
        "line": {"color": "--ink-soft", "width": 1, "shape": _MIDDLE},
        "fill": "tozeroy",
        "fillcolor": "--series-rest/0.25",
        "hovertemplate": f"%{{y:,.4~g}} {unit}",
    }
    layout = figure["layout"]
    right = {
        **{name: layout["yaxis"][name] for name in ("rangemode", "fixedrange", "nticks")},
        "title": axis_title(title, unit),
        "tickformat": number_format(highest, unit),
        "side": "right",
        "showgrid": False,
        "zeroline": False,
    }
    layout["margin"] |= {"r": _RIGHT}
    layout["yaxis"] |= {"overlaying": "y2"}
    return {"data": [area, *figure["data"]], "layout": {**layout, "yaxis2": right}}


def scatter(
    chart: Chart, points: Cells, bins: Sequence[Bin], size: float, load: tuple[str, str]
) -> Figure:
    """Draw a metric against the concurrency: joined points, medians of bins and their band.

    Args:
        chart: content of the metric; `unit` is that of the drawn values.
        points: joined points; the area of a circle grows with their number.
        bins: ascending.
        size: the unit of the drawn values, in units of the values.
        load: title and unit of the concurrency.
    """
    title, unit = load
    values = (points.values / size).tolist()
    highest = max([*values, *(each.median / size for each in bins)], default=0.0)
    number = f",.4~{number_format(highest, chart.unit)[-1]}"
    most = max(points.counts.tolist(), default=1)
    return {
        "data": [
            {
                "type": "scatter",
                "mode": "markers",
                "name": "jobs" if chart.labels.get("n") is None else chart.labels["n"],
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
                "tickformat": ",~g",
                "linecolor": "--line-strong",
                "ticks": "outside",
                "tickcolor": "--line-strong",
            },
            "yaxis": {
                **_AXIS,
                "title": axis_title(chart.title, chart.unit),
                "tickformat": number_format(highest, chart.unit),
                "nticks": 5,
                "zerolinecolor": "--line-strong",
            },
        },
    }


_AXIS = {"rangemode": "tozero", "fixedrange": True, "gridcolor": "--line"}


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
