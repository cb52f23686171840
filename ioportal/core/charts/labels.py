"""Texts of charts: untrusted names, and titles of axes."""

from __future__ import annotations

from textwrap import wrap

from ioportal.core.units import Unit
from ioportal.core.visible_text import visible

FONT_SIZE = 12  # pixels; no text of a chart is smaller
_AXIS_TITLE_WIDTH = 28  # characters
_CATEGORY_WIDTH = 20  # characters, so that phones have room for the plot
# Columns next to kinds in frames and exports, and kinds that are no names.
_RESERVED = {
    *("active", "at", "bin", "cause", "end", "kind", "label", "layer", "name", "observed"),
    *("observed_sources", "operations", "seconds", "source", "sources", "start"),
    *("all others", "no single cause", "other", "others visible", "usual", "your other jobs"),
}


def plotly_text(name: str) -> str:
    """Escape a name for Plotly: no markup, every character visible."""
    return visible(name).replace("<", "&lt;")


def category_text(name: str) -> str:
    """Escape the name of a category, in lines of at most 20 characters if its words permit."""
    lines = wrap(visible(name), _CATEGORY_WIDTH, break_long_words=False)
    return "<br>".join(map(plotly_text, lines))


def kind_of(name: str) -> str:
    """Return the kind of a chart for an untrusted name: unlike any other column and kind."""
    return (
        f"\N{LEFT DOUBLE QUOTATION MARK}{name}\N{RIGHT DOUBLE QUOTATION MARK}"
        if name in _RESERVED
        else name
    )


def axis_title(title: str, unit: str) -> dict[str, object]:
    """Return the title of a value axis: the quantity in the title of its chart, and the unit."""
    quantity = title.partition(" by ")[0].partition(" of ")[0]
    unit = shown_unit(unit)
    is_named = not unit or unit.lower() in quantity.lower()
    text = quantity if is_named else f"{quantity} ({unit})"
    lines = wrap(plotly_text(text), _AXIS_TITLE_WIDTH)
    return {"text": "<br>".join(lines), "font": {"size": FONT_SIZE}}


def shown_unit(unit: str) -> str:
    """Return the unit as texts show it: shares have a per cent sign, ratios no unit."""
    return "" if unit in {Unit.SHARE, Unit.RATIO} else unit
