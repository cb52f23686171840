"""Horizontal stacked bars: a row per run or arm, a segment per part of its time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ioportal.core.charts.labels import axis_title, category_text, plotly_text
from ioportal.core.charts.time_axis import number_format

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioportal.core.charts.time_axis import Figure

_ROW = 46  # pixels
_MARGIN = {"l": 66, "r": 14, "t": 30, "b": 54}


@dataclass(frozen=True)
class Segment:
    """A part of each row in the unit of the axis; None: unknown, and not drawn."""

    name: str
    token: str
    values: Sequence[float | None]
    pattern: str = ""  # so that colour is not the only cue


def stacked(
    rows: Sequence[str], segments: Sequence[Segment], title: str, unit: str, *, hover: str = ".4~g"
) -> Figure:
    """Draw a bar per row with its segments from left to right.

    Args:
        rows: names, from top to bottom; names may repeat.
        segments: each with a value per row.
        title: title of the value axis.
        unit: unit of the values.
        hover: d3's format of a value.
    """
    highest = max(
        (sum(value or 0 for value in values) for values in zip(*_values(segments), strict=True)),
        default=0.0,
    )
    return {
        "data": [
            {
                "type": "bar",
                "orientation": "h",
                "name": plotly_text(segment.name),
                "y": list(range(len(rows))),
                "x": list(segment.values),
                "customdata": [plotly_text(name) for name in rows],
                "marker": {
                    "color": segment.token,
                    "pattern": {"shape": segment.pattern, "size": 6, "solidity": 0.25},
                },
                "hovertemplate": f"%{{customdata}}, {plotly_text(segment.name)}: "
                f"%{{x:{hover}}} {unit}<extra></extra>",
            }
            for segment in segments
        ],
        "layout": {
            **row_layout(rows),
            "barmode": "relative",
            "xaxis": value_axis(title, unit, highest),
        },
    }


def _values(segments: Sequence[Segment]) -> list[Sequence[float | None]]:
    return [segment.values for segment in segments]


def row_layout(rows: Sequence[str]) -> Figure:
    """Return the layout of a chart with a named row each."""
    return {
        "height": _ROW * len(rows) + _MARGIN["t"] + _MARGIN["b"],
        "margin": dict(_MARGIN),
        "dragmode": False,
        "hovermode": "closest",
        "showlegend": True,
        "legend": {
            "orientation": "h",
            "x": 0,
            "y": 1.02,
            "yanchor": "bottom",
            "traceorder": "normal",
        },
        "yaxis": {
            "automargin": True,
            "fixedrange": True,
            "gridcolor": "--line",
            "zeroline": False,
            "tickvals": list(range(len(rows))),
            "ticktext": [category_text(name) for name in rows],
            "range": [len(rows) - 0.5, -0.5],
        },
    }


def value_axis(title: str, unit: str, highest: float) -> Figure:
    """Return a horizontal axis of values from 0."""
    return {
        "title": axis_title(title, unit),
        "rangemode": "tozero",
        "fixedrange": True,
        "nticks": 6,
        "tickangle": 0,
        "tickformat": number_format(highest, unit),
        "gridcolor": "--line",
        "zerolinecolor": "--line-strong",
        "linecolor": "--line-strong",
        "ticks": "outside",
        "tickcolor": "--line-strong",
    }
