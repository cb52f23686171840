"""Stacked bars of the steps of runs by arm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ioportal.charts.experiments.axes import categories, layout, number, values_axis
from ioportal.charts.labels import plotly_text
from ioportal.charts.palette import HUES, REST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioportal.analysis.experiments.efficiency import StepTimes
    from ioportal.charts.time_axis import Figure

_OTHER = "rest of the run"


def figure(arms: Sequence[StepTimes]) -> Figure:
    """Draw the mean seconds of each step, and the rest of the wall-clock time, stacked.

    Args:
        arms: at least one.
    """
    names = list(dict.fromkeys(name for arm in arms for name in arm.seconds))
    series = [(name, [arm.seconds.get(name) for arm in arms]) for name in names]
    series.append((_OTHER, [arm.rest_s for arm in arms]))
    highest = max(sum(arm.seconds.values()) + (arm.rest_s or 0) for arm in arms)
    return {
        "data": [
            {
                "type": "bar",
                "orientation": "h",
                "name": plotly_text(name),
                "y": [plotly_text(arm.arm) for arm in arms],
                "x": seconds,
                "marker": {"color": REST if name == _OTHER else HUES[at % len(HUES)]},
                "hovertemplate": f"{plotly_text(name)}: %{{x:{number('s', highest)}}} s"
                "<extra></extra>",
            }
            for at, (name, seconds) in enumerate(series)
        ],
        "layout": layout(
            values_axis("Mean time", "s", highest), categories(), rows=len(arms), barmode="stack"
        ),
    }
