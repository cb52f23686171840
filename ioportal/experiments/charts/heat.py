"""Heat maps of two categories."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ioportal.core.charts.labels import axis_title, category_text, plotly_text
from ioportal.experiments.charts.axes import categories, layout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioportal.core.charts.time_axis import Figure

_SCALE = "Cividis"  # readable with any colour blindness, and in both themes
_PALE_SCALE = [[0, "--series-1/0.04"], [1, "--series-1/0.5"]]  # behind texts
_CELL = 44  # pixels
_FEW = 12  # rows with texts in their cells
_MARGIN = 110
_TALLEST = 620


def figure(
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
