"""Texts of charts: untrusted names, and titles of axes."""

from __future__ import annotations

from textwrap import wrap

from ioportal.visible_text import visible

FONT_SIZE = 12  # pixels; no text of a chart is smaller
_AXIS_TITLE_WIDTH = 28  # characters


def plotly_text(name: str) -> str:
    """Escape a name for Plotly: no markup, every character visible."""
    return visible(name).replace("<", "&lt;")


def axis_title(title: str, unit: str) -> dict[str, object]:
    """Return the title of a value axis: the quantity in the title of its chart, and the unit."""
    quantity = title.partition(" by ")[0].partition(" of ")[0]
    is_named = not unit or unit.lower() in quantity.lower()
    text = quantity if is_named else f"{quantity} ({unit})"
    lines = wrap(plotly_text(text), _AXIS_TITLE_WIDTH)
    return {"text": "<br>".join(lines), "font": {"size": FONT_SIZE}}
