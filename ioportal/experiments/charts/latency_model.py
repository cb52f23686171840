"""Charts of the model of latency and bandwidth: predicted terms, and residuals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ioportal.core.charts.labels import plotly_text
from ioportal.experiments.charts.bars import Segment, row_layout, stacked, value_axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioportal.core.charts.time_axis import Figure
    from ioportal.experiments.analysis.latency_model import Prediction


def terms(predictions: Sequence[Prediction]) -> Figure:
    """Draw the latency and the transfer term of each load, with the measured time as a mark.

    Args:
        predictions: from top to bottom; times in s.
    """
    names = [each.load.name for each in predictions]
    figure = stacked(
        names,
        [
            Segment("latency", "--series-2", [each.latency_s for each in predictions], "/"),
            Segment("transfer", "--series-1", [each.transfer_s for each in predictions]),
        ],
        "Time in storage (s)",
        "s",
    )
    measured = [
        (row, each.load.measured_s)
        for row, each in enumerate(predictions)
        if each.load.measured_s is not None
    ]
    if measured:
        figure["data"].append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": "measured",
                "x": [value for _, value in measured],
                "y": [row for row, _ in measured],
                "customdata": [plotly_text(names[row]) for row, _ in measured],
                "marker": {
                    "symbol": "diamond",
                    "size": 11,
                    "color": "--ink",
                    "line": {"color": "--panel", "width": 1.5},
                },
                "hovertemplate": "%{customdata}, measured: %{x:.4~g} s<extra></extra>",
            }
        )
    return figure


def residuals(predictions: Sequence[Prediction]) -> Figure:
    """Draw measured - predicted time of each load with a measured time.

    Args:
        predictions: from top to bottom; times in s.
    """
    known = [
        (each.load.name, each.residual_s) for each in predictions if each.residual_s is not None
    ]
    names = [name for name, _ in known]
    values = [value for _, value in known]
    highest = max(map(abs, values), default=0.0)
    return {
        "data": [
            {
                "type": "bar",
                "orientation": "h",
                "name": "measured - predicted",
                "y": list(range(len(names))),
                "x": values,
                "customdata": [plotly_text(name) for name in names],
                "marker": {"color": "--series-4"},
                "hovertemplate": "%{customdata}: %{x:+.4~g} s<extra></extra>",
            }
        ],
        "layout": {
            **row_layout(names),
            "showlegend": False,
            "xaxis": value_axis("Measured - predicted (s)", "s", highest),
        },
    }
