"""Colours of data series, defined once, and the looks of arms; CSS and figures use tokens.

The hues can be distinguished with any common colour blindness, on light and dark backgrounds. They
follow the recommendation of Okabe and Ito, with lightness adjusted to each background. Figures
refer to tokens such as ``--series-1``; the page resolves them for its theme.
"""

from dataclasses import dataclass
from typing import Final

# Token to its colours on a light and on a dark background.
SERIES: Final = {
    "--series-1": ("#0068a8", "#58aee8"),  # blue
    "--series-2": ("#c44e00", "#ff9150"),  # vermilion
    "--series-3": ("#00805f", "#3cc99c"),  # green
    "--series-4": ("#a8588a", "#e79fcb"),  # purple
    "--series-5": ("#c98a00", "#f3bd4e"),  # orange
    "--series-6": ("#3fa3dc", "#a9dbf8"),  # sky
    "--series-7": ("#7a6a00", "#ded36a"),  # olive
    "--series-8": ("#b3224f", "#ff7d9c"),  # raspberry
    "--series-9": ("#5a48c8", "#a99bff"),  # indigo
    "--series-10": ("#7d4a1e", "#c99b6d"),  # brown
    "--series-11": ("#00818f", "#4fd0dc"),  # teal
    "--series-12": ("#5c9a00", "#a6dc4a"),  # lime
    "--series-rest": ("#8a949e", "#77838f"),  # all further series
}
REST: Final = "--series-rest"
HUES: Final = tuple(token for token in SERIES if token != REST)

ALL_OTHERS: Final = "all others"  # no name: `axes.kind_of` quotes it
PRINCIPAL: Final = "--principal:"  # prefix of a principal's token

# An operation has the same colour on every chart.
_BY_KIND = {
    "open": "--series-1",
    "close": "--series-2",
    "getattr": "--series-3",
    "setattr": "--series-4",
    "unlink": "--series-5",
    "readpage": "--series-6",
    "getxattr": "--series-7",
    "read": "--series-1",
    "write": "--series-2",
    "read_bytes": "--series-1",
    "write_bytes": "--series-2",
    "LDLM_ENQUEUE": "--series-1",
    "MDS_CLOSE": "--series-2",
    "MDS_GETATTR": "--series-3",
    "MDS_REINT": "--series-4",
    "LDLM_CANCEL": "--series-5",
    "MDS_READPAGE": "--series-6",
    "MDS_GETXATTR": "--series-7",
    "completed": "--series-3",
    "finished": "--series-3",
    "failed": "--series-2",
    "timeout": "--series-5",
    "cancelled": "--series-4",
    "median": "--series-1",
    "p90": "--series-2",
    "other": REST,
}


def colours(kinds: list[str]) -> dict[str, str]:
    """Assign each kind its preferred token if free, else the next free token, else `REST`."""
    tokens: dict[str, str] = {}
    for kind in kinds:
        if _BY_KIND.get(kind) not in {None, *tokens.values()}:
            tokens[kind] = _BY_KIND[kind]
    free = [hue for hue in HUES if hue not in tokens.values()]
    for kind in kinds:
        if kind not in tokens:
            tokens[kind] = free.pop(0) if free else REST
    return tokens


def principals(names: list[str]) -> dict[str, str]:
    """Assign each principal a separate token.

    The browser maps these tokens to hues (static/js/charts.js), by rank in the tables of the page:
    a principal has one colour in all charts and tables and keeps it when ranks change.
    """
    return {name: REST if name == ALL_OTHERS else f"{PRINCIPAL}{name}" for name in names}


def stylesheet() -> str:
    """Return the tokens as CSS custom properties for light and dark."""
    lines = [f"  {token}: light-dark({light}, {dark});" for token, (light, dark) in SERIES.items()]
    return "\n".join([":root {", *lines, "}", ""])


MOST_ARMS: Final = 4


@dataclass(frozen=True)
class Look:
    """The style of an arm on every chart of a page; colour is not the only cue."""

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
