"""Layout, axes and lines of the charts of experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ioportal.core.charts.axes import axis_title, log_axis, plotly_text
from ioportal.core.charts.time_axis import number_format

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ioportal.core.charts.palette import Look
    from ioportal.core.charts.time_axis import Figure

_HEIGHT = 320
_MARGIN = {"l": 70, "r": 16, "t": 34, "b": 56}
_ROW, _LINE = 18, 16  # pixels of a category without text, and of each line of its text


def layout(xaxis: Figure, yaxis: Figure, *, rows: Sequence[str] = (), **more: Any) -> Figure:
    """Return the layout of a chart; its height has room for the texts of `rows`, categories."""
    lines = max((text.count("<br>") + 1 for text in rows), default=0)
    room = len(rows) * (_ROW + lines * _LINE) + _MARGIN["t"] + _MARGIN["b"]
    height = room if rows else _HEIGHT
    return {
        "height": height,
        "margin": dict(_MARGIN),
        "dragmode": False,
        "hovermode": "closest",
        "showlegend": True,
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "xaxis": xaxis,
        "yaxis": yaxis,
        **more,
    }


def values_axis(title: str, unit: str, highest: float, **more: Any) -> Figure:
    """Return a linear axis from zero."""
    return {
        "title": axis_title(title, unit),
        "tickformat": number_format(highest, unit),
        "rangemode": "tozero",
        "nticks": 6,
        "tickangle": 0,
        "fixedrange": True,
        "gridcolor": "--line",
        "zerolinecolor": "--line-strong",
        "linecolor": "--line-strong",
        **more,
    }


def logarithmic_axis(title: str, unit: str, values: Sequence[float]) -> Figure:
    """Return a logarithmic axis with room for values above 0, of which there is at least one."""
    low, high = min(values), max(values)
    return {**values_axis(title, unit, high), **log_axis(low, high), "rangemode": "normal"}


def categories() -> Figure:
    """Return an axis of categories, the first at the top."""
    return {
        "type": "category",
        "autorange": "reversed",
        "automargin": True,
        "fixedrange": True,
        "gridcolor": "--line",
        "zeroline": False,
    }


def number(unit: str, highest: float) -> str:
    """Return d3's format of a value with four digits, for hover texts."""
    return f".4~{number_format(highest, unit)[-1]}"


def line(
    name: str, look: Look, x: Iterable[Any], y: Iterable[Any], hover: str, **more: Any
) -> Figure:
    """Return a line, or with another mode marks, in the look of an arm."""
    return {
        "type": "scatter",
        "mode": "lines",
        "name": plotly_text(name),
        "x": list(x),
        "y": list(y),
        "line": {"color": look.token, "width": 1.8, "dash": look.dash},
        "marker": {"color": look.token, "symbol": look.symbol},
        "hovertemplate": hover,
        **more,
    }


def error_bars(look: Look, above: Sequence[float], below: Sequence[float]) -> Figure:
    """Return intervals of the values of a line."""
    return {
        "type": "data",
        "symmetric": False,
        "array": above,
        "arrayminus": below,
        "color": look.token,
    }
