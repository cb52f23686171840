"""Charts of categories: boxes in groups, and heat maps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ioportal.core.charts.arms import LOOKS
from ioportal.core.charts.labels import axis_title, category_text, plotly_text
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


def box_plot(quantity: tuple[str, str], boxes: Sequence[Box]) -> Figure:
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


_SCALE = "Cividis"  # readable with any colour blindness, and in both themes
_PALE_SCALE = [[0, "--series-1/0.04"], [1, "--series-1/0.5"]]  # behind texts
_CELL = 44  # pixels
_FEW = 12  # rows with texts in their cells
_MARGIN = 110
_TALLEST = 620


def heat_map(
    names: tuple[str, str],
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[float | None]],
    *,
    texts: Sequence[Sequence[str]] | None = None,
    quantity: tuple[str, str],
    bounds: tuple[float, float] | None = None,
) -> Figure:
    """Draw values as colours; small maps have texts in their cells.

    Args:
        names: of rows and columns.
        rows: names of the rows, the first at the top.
        columns: names of the columns.
        values: a list per row; None: no value.
        texts: in the cells; None: none.
        quantity: title of the colours, and d3's format of the values.
        bounds: of the colours; None: of the values.
    """
    title, form = quantity
    gap = 1 if len(rows) <= _FEW else 0
    trace = {
        "type": "heatmap",
        "x": [plotly_text(column) for column in columns],
        "y": [category_text(row) for row in rows],
        "z": [list(row) for row in values],
        "colorscale": _SCALE,
        "hoverongaps": False,
        "xgap": gap,
        "ygap": gap,
        "colorbar": {
            "title": {"text": plotly_text(title), "side": "right"},
            "tickformat": form,
            "thickness": 14,
        },
        "hovertemplate": f"%{{y}}, %{{x}}: %{{z:{form}}}<extra></extra>",
    }
    if bounds:
        trace |= {"zmin": bounds[0], "zmax": bounds[1]}
    if texts and len(rows) <= _FEW:
        trace |= {
            "text": [list(row) for row in texts],
            "texttemplate": "%{text}",
            "textfont": {"color": "--ink"},
            "colorscale": _PALE_SCALE,
        }
    cell = _CELL if len(rows) <= _FEW else _TALLEST / len(rows)
    drawn = layout(
        {
            **categories(),
            "autorange": True,
            "title": axis_title(names[1], ""),
            "showgrid": False,
            "nticks": _FEW,
        },
        {**categories(), "title": axis_title(names[0], ""), "showgrid": False},
    )
    return {
        "data": [trace],
        "layout": {**drawn, "height": round(cell * len(rows)) + _MARGIN, "showlegend": False},
    }
