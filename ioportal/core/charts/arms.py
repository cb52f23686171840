"""Looks of the arms of a comparison: hue, dash and symbol, so that colour is not the only cue."""

from dataclasses import dataclass
from typing import Final

MOST_ARMS: Final = 4


@dataclass(frozen=True)
class Look:
    """The style of an arm on every chart of a page."""

    token: str
    dash: str
    symbol: str
    pattern: str  # of filled shapes


LOOKS: Final = (
    Look("--series-1", "solid", "circle", ""),
    Look("--series-2", "6px,3px", "diamond", "/"),
    Look("--series-3", "2px,2px", "square", "."),
    Look("--series-4", "9px,3px,2px,3px", "triangle-up", "x"),
)
