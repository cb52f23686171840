"""Boxes of any number of categories, in groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ioportal.core.charts.arms import LOOKS
from ioportal.core.charts.labels import category_text, plotly_text
from ioportal.experiments.charts.axes import categories, layout, values_axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioportal.core.charts.time_axis import Figure

_PARTS = ("lowerfence", "q1", "median", "q3", "upperfence")


@dataclass(frozen=True)
class Box:
    """A category: its name, its group (a colour), and values at 5, 25, 50, 75 and 95 %."""

    name: str
    group: str
    quantiles: Sequence[float]


def figure(quantity: tuple[str, str], boxes: Sequence[Box]) -> Figure:
    """Draw a horizontal box for each category: quartiles and median, with whiskers p5 to p95.

    Args:
        quantity: title and unit.
        boxes: at least one; groups have the looks of arms, repeated after the fourth.
    """
    groups = list(dict.fromkeys(box.group for box in boxes))
    highest = max(box.quantiles[-1] for box in boxes)
    data = []
    for at, group in enumerate(groups):
        look = LOOKS[at % len(LOOKS)]
        own = [box for box in boxes if box.group == group]
        data.append(
            {
                "type": "box",
                "orientation": "h",
                "name": plotly_text(group),
                "y": [category_text(box.name) for box in own],
                **{
                    part: [box.quantiles[place] for box in own] for place, part in enumerate(_PARTS)
                },
                "fillcolor": f"{look.token}/0.25",
                "line": {"color": look.token, "width": 1.8},
                "whiskerwidth": 0.5,
            }
        )
    drawn = layout(
        values_axis(*quantity, highest),
        {
            **categories(),
            "categoryorder": "array",
            "categoryarray": [category_text(box.name) for box in boxes],
        },
        rows=[category_text(box.name) for box in boxes],
        boxmode="overlay",
    )
    return {"data": data, "layout": {**drawn, "showlegend": len(groups) > 1}}
