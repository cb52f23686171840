"""Figure of a scaling test: values by scale on logarithmic axes, with the fitted growth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ioportal.core.charts.labels import plotly_text, shown_unit
from ioportal.experiments.charts.axes import layout, logarithmic_axis, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioportal.core.charts.arms import Look
    from ioportal.core.charts.time_axis import Figure
    from ioportal.experiments.analysis.scaling import Scaling

_BAND = 0.16


def figure(
    quantity: tuple[str, str],
    series: Sequence[tuple[str, Look, Scaling, Sequence[tuple[float, float, str]]]],
) -> Figure:
    """Draw the values by scale: single runs, means with 95 % intervals, fits with their bands.

    Args:
        quantity: title and unit.
        series: of each arm its name, look, analysis and runs (scale, value, name); values and
            scales are above 0.
    """
    title, unit = quantity
    points = [run for _, _, _, runs in series for run in runs]
    scales, values = [scale for scale, _, _ in points], [value for _, value, _ in points]
    value = f"%{{y:{number(unit, max(values))}}} {shown_unit(unit)}"
    return {
        "data": [trace for each in series for trace in _arm(each, value)],
        "layout": layout(
            logarithmic_axis("Nodes", "", scales), logarithmic_axis(title, unit, values)
        ),
    }


def _arm(
    series: tuple[str, Look, Scaling, Sequence[tuple[float, float, str]]], value: str
) -> list[Figure]:
    name, look, scaling, runs = series
    label = plotly_text(name)
    outlying = set(scaling.outliers)
    levels = scaling.levels
    return [
        *_fit(scaling, look, label),
        {
            "type": "scatter",
            "mode": "markers",
            "name": f"{label}, runs",
            "x": [scale for scale, _, _ in runs],
            "y": [value for _, value, _ in runs],
            "text": [plotly_text(run) for _, _, run in runs],
            "marker": {
                "color": f"{look.token}/0.5",
                "size": [9 if at in outlying else 5 for at in range(len(runs))],
                "symbol": ["x" if at in outlying else "circle" for at in range(len(runs))],
            },
            "showlegend": False,
            "hovertemplate": f"%{{text}}: {value} at %{{x:,~g}}<extra></extra>",
        },
        {
            "type": "scatter",
            "mode": "markers",
            "name": f"{label}: mean, 95 % interval",
            "x": [level.scale for level in levels],
            "y": [level.mean for level in levels],
            "error_y": {
                "type": "data",
                "symmetric": False,
                "array": [(level.high or level.mean) - level.mean for level in levels],
                # A bound below zero has no place on the axis.
                "arrayminus": [
                    min(
                        level.mean - (level.mean if level.low is None else level.low),
                        0.9 * level.mean,
                    )
                    for level in levels
                ],
                "color": look.token,
            },
            "customdata": [level.count for level in levels],
            "marker": {"color": look.token, "size": 9, "symbol": look.symbol},
            "hovertemplate": f"mean of %{{customdata}} runs at %{{x:,~g}}: {value}<extra></extra>",
        },
    ]


def _fit(scaling: Scaling, look: Look, label: str) -> list[Figure]:
    """Return the band as two lines with the area between them, and the fitted line."""
    if scaling.growth is None:
        return []
    curve = scaling.growth.curve
    line = {"type": "scatter", "mode": "lines", "x": [point.scale for point in curve]}
    edge = {**line, "line": {"width": 0, "color": look.token}, "hoverinfo": "skip"}
    return [
        {**edge, "y": [point.low for point in curve], "showlegend": False},
        {
            **edge,
            "y": [point.high for point in curve],
            "fill": "tonexty",
            "fillcolor": f"{look.token}/{_BAND}",
            "showlegend": False,
        },
        {
            **line,
            "y": [point.value for point in curve],
            "name": f"{label}: fit",
            "line": {"color": look.token, "width": 1.8, "dash": look.dash},
            "hoverinfo": "skip",
        },
    ]
