"""Charts of a server's capacity: latency against load, and load over time with the knee."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ioportal.core.charts.axes import FONT_SIZE
from ioportal.core.charts.time_axis import layout

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from ioportal.core.charts.time_axis import Axis, Figure

_HEIGHT = 330
_ROOM = 1.05  # right of the highest load
_LOW, _HIGH = 0.8, 1.3  # of the lowest and the highest latency, on the log axis
_OBSERVED, _KNEE, _BUSY = "--series-1", "--series-2", "--series-3"


@dataclass(frozen=True)
class Marks:
    """Loads to mark, in the unit of the chart.

    `limit` is the knee with its interval, where `high` is None without an upper bound. If
    `is_knee` is False it is the highest safe load, without an interval.
    """

    unit: str
    busy: float
    limit: float
    is_knee: bool
    low: float | None
    high: float | None

    @property
    def name(self) -> str:
        """The name of the limit."""
        return "knee" if self.is_knee else "highest steady load with normal latency"


def curve(points: pl.DataFrame, marks: Marks, factor: float) -> Figure:
    """Draw the latency against the load: medians with spread, the fitted curve and the knee.

    Args:
        points: columns load (in the chart's unit), p10, median, p90, fitted (relative to the
            latency without load).
        marks: loads to mark.
        factor: relative latency at the knee.

    Returns:
        ``{"data": [...], "layout": {...}}``.
    """
    loads, medians = points["load"], points["median"]
    right = _ROOM * max(*loads, marks.high or 0.0, marks.limit, marks.busy)
    bottom = _LOW * min(*points["p10"], 1.0)
    top = _HIGH * max(*points["p90"], factor)
    hover = f"%{{y:,.3~g}} times at %{{x:,.4~g}} {marks.unit}<extra></extra>"
    return {
        "data": [
            *_band(marks, (bottom, top), right),
            {
                "type": "scatter",
                "mode": "markers",
                "name": "median, 10 to 90 %",
                "x": loads.to_list(),
                "y": medians.to_list(),
                "error_y": {
                    "type": "data",
                    "symmetric": False,
                    "array": (points["p90"] - medians).to_list(),
                    "arrayminus": (medians - points["p10"]).to_list(),
                    "color": f"{_OBSERVED}/0.45",
                    "thickness": 1,
                    "width": 0,
                },
                "marker": {"color": _OBSERVED, "size": 5},
                "hovertemplate": hover,
            },
            {
                "type": "scatter",
                "mode": "lines",
                "name": "fitted curve",
                "x": loads.to_list(),
                "y": points["fitted"].to_list(),
                "line": {"color": "--ink", "width": 1.4},
                "hoverinfo": "skip",
            },
            _line([0, right], [factor, factor], f"{factor:g} times", "--ink-soft", "1px,2px"),
            _line([marks.busy] * 2, [bottom, top], "busy hours", _BUSY, "8px,3px"),
            _line(
                [marks.limit] * 2,
                [bottom, top],
                marks.name,
                _KNEE,
                "solid" if marks.is_knee else "4px,2px",
            ),
        ],
        "layout": {
            "height": _HEIGHT,
            "margin": {"l": 78, "r": 12, "t": 48, "b": 58},
            "hovermode": "closest",
            "dragmode": False,
            "showlegend": True,
            "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
            "xaxis": {
                "title": {"text": f"Load ({marks.unit})", "font": {"size": FONT_SIZE}},
                "range": [0, right],
                "fixedrange": True,
                "tickformat": "~s",
                "nticks": 6,
                "gridcolor": "--line",
                "linecolor": "--line-strong",
            },
            "yaxis": {
                "type": "log",
                "title": {
                    "text": "Latency<br>(times that without load)",
                    "font": {"size": FONT_SIZE},
                },
                "tickvals": [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000],
                "fixedrange": True,
                "gridcolor": "--line",
            },
        },
    }


def load(hours: pl.DataFrame, axis: Axis, marks: Marks) -> Figure:
    """Draw the load over time with the knee or the highest safe load.

    Args:
        hours: columns start, mean, highest (in the chart's unit), ascending; hours without data are
            missing.
        axis: the range.
        marks: loads to mark.

    Returns:
        ``{"data": [...], "layout": {...}}``.
    """
    rows = hours.upsample("start", every="1h")
    at = [axis.place(start) for start in rows["start"]]
    highest = max(*hours["highest"], marks.limit)
    ends = [axis.place(axis.start), axis.place(axis.end)]
    base = layout(axis, (), (), title="Load", unit=marks.unit, highest=highest)
    hover = f"%{{y:,.4~s}} {marks.unit}"
    return {
        "data": [
            *(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "name": label,
                    "x": at,
                    "y": rows[kind].to_list(),
                    "line": {"color": _OBSERVED, "width": width, "dash": dash},
                    "connectgaps": False,
                    "hovertemplate": hover,
                }
                for kind, label, width, dash in (
                    ("mean", "mean of the hour", 1.8, "solid"),
                    ("highest", "highest window", 1, "1px,2px"),
                )
            ),
            _line(ends, [marks.limit] * 2, marks.name, _KNEE, "solid"),
            *(
                [
                    {
                        "type": "scatter",
                        "mode": "none",
                        "x": [*ends, *reversed(ends)],
                        "y": [marks.low] * 2 + [marks.high] * 2,
                        "fill": "toself",
                        "fillcolor": f"{_KNEE}/0.16",
                        "name": "95 % interval",
                        "hoverinfo": "skip",
                    }
                ]
                if marks.low is not None and marks.high is not None
                else []
            ),
        ],
        "layout": base,
    }


def _band(marks: Marks, heights: tuple[float, float], right: float) -> list[Figure]:
    """Return the interval of the knee, up to the end of the axis without an upper bound."""
    if marks.low is None:
        return []
    high = right if marks.high is None else marks.high
    bottom, top = heights
    return [
        {
            "type": "scatter",
            "mode": "none",
            "x": [marks.low, high, high, marks.low],
            "y": [bottom, bottom, top, top],
            "fill": "toself",
            "fillcolor": f"{_KNEE}/0.16",
            "name": "knee, 95 % interval",
            "hoverinfo": "skip",
        }
    ]


def _line(x: Sequence[object], y: Sequence[float], name: str, colour: str, dash: str) -> Figure:
    return {
        "type": "scatter",
        "mode": "lines",
        "x": list(x),
        "y": list(y),
        "name": name,
        "line": {"color": colour, "dash": dash, "width": 1.8},
        "hoverinfo": "skip",
    }
