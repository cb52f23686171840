"""Texts of charts, untrusted names among them, and logarithmic axes."""

from __future__ import annotations

import re
from math import ceil, floor, log10
from textwrap import wrap
from typing import Any

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
    is_named = not unit or re.search(rf"\b{re.escape(unit)}\b", quantity, re.IGNORECASE)
    text = quantity if is_named else f"{quantity} ({unit})"
    lines = wrap(plotly_text(text), _AXIS_TITLE_WIDTH)
    return {"text": "<br>".join(lines), "font": {"size": FONT_SIZE}}


def shown_unit(unit: str) -> str:
    """Return the unit as texts show it: shares have a per cent sign, ratios no unit."""
    return "" if unit in {Unit.SHARE, Unit.RATIO} else unit


_MOST_TICKS = 7
_FEWEST_TICKS = 3
_MARGIN = 0.04  # at either end, as a share of the range
_ALONE = 0.15  # decades at either side of a single value
_ROUND = (1, 2, 5)
_PATTERNS = ((_ROUND, 1), *(((1,), every) for every in (1, 2, 3, 6)))  # digits, distance of powers


def log_axis(low: float, high: float) -> dict[str, Any]:
    """Return type, range and ticks as Plotly's axis attributes, for values from low > 0 to high."""
    bounds = log10(low), log10(high)
    margin = _MARGIN * (bounds[1] - bounds[0]) or _ALONE
    left, right = bounds[0] - margin, bounds[1] + margin
    return {
        "type": "log",
        "range": [left, right],
        "tickvals": log_ticks(10**left, 10**right),
        "tickangle": 0,
    }


def log_ticks(low: float, high: float) -> list[float]:
    """Return up to seven round values from low > 0 to high.

    They are 1, 2 and 5 times the powers of ten; of a large range powers of ten alone, and of a
    small one multiples of a round number.
    """
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    values: list[float] = []
    for digits, every in _PATTERNS:
        powers_used = [power for power in powers if power % every == 0]
        all_values = (float(f"{digit}e{power}") for power in powers_used for digit in digits)
        values = [value for value in all_values if low <= value <= high]
        if len(values) <= _MOST_TICKS:
            break
    return values if len(values) >= _FEWEST_TICKS else _multiples(low, high)


def _multiples(low: float, high: float) -> list[float]:
    step = round_step((high - low) / (_MOST_TICKS - 1))
    return [number * step for number in range(ceil(low / step), floor(high / step) + 1)]


def round_step(least: float) -> float:
    """Return the smallest 1, 2 or 5 times a power of ten that is at least a positive number."""
    power = floor(log10(least))
    steps = (float(f"{digit}e{at}") for at in (power, power + 1) for digit in _ROUND)
    return next(step for step in steps if step >= least)
