"""Histograms of up to four populations as Plotly figures, similar to `core.charts.timelines`.

A log scale is drawn on a linear axis of exponents, which has room for a bar of zeros.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log10
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ioportal.core.charts.axes import FONT_SIZE, axis_title, log_ticks, plotly_text
from ioportal.jobs.analysis.histograms import ZERO, Scale

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ioportal.jobs.analysis.histograms import Bin

Figure = dict[str, Any]

# Of the first population and the others.
COLOURS = ("--series-1", "--series-2", "--series-3", "--series-4")
_FILLS = ("--series-1/0.8", "--series-2/0.25", "--series-3/0.25", "--series-4/0.25")
_LINES = (("--ink", "solid"), ("--series-2", "4px,2px"))
NO_LINES: Mapping[str, float] = MappingProxyType({})
_HEIGHT = 290
_HEADROOM = 1.06
_MARGIN = 0.015  # at either end, as a share of the bars' width
_ZERO_WIDTH = 0.16  # of the bar of zeros in decades, unless other bars are narrower
_FEWEST_TICKS, _FEW_TICKS, _MANY_TICKS = 2, 3, 8
_TICK_ROOM = 0.08  # free space after the tick of zeros, as a share of the axis
_ROUND = (1, 2, 5)


@dataclass(frozen=True)
class Bars:
    """One population: number of its `known` values and their counts by bin (None: hidden)."""

    name: str
    known: int
    counts: Sequence[int | None]

    def share(self, count: int) -> float:
        """Return a count as a share of the known values."""
        return count / self.known if self.known else 0.0


@dataclass(frozen=True)
class Chart:
    """Style of a histogram.

    `title` and `unit` describe the values. `label` formats a bound of a bin, `tick` a tick of
    the axis.
    """

    title: str
    unit: str

    label: Callable[[int], str]
    tick: Callable[[int], str]
    scale: Scale
    as_shares: bool
    counted: str = "jobs"
    size: float = 1  # of a unit of the axis in units of the values, such as 3,600 for hours


def figure(
    chart: Chart,
    bins: Sequence[Bin],
    populations: Sequence[Bars],
    links: Sequence[str],
    lines: Mapping[str, float] = NO_LINES,
) -> Figure:
    """Draw overlaid bars of up to four populations.

    Args:
        chart: style of the histogram.
        bins: bounds of the bins, ascending.
        populations: each with a count for each bin.
        links: address of each bin, opened by a click.
        lines: up to two values within bins by name, drawn as vertical lines.

    Returns:
        ``{"data": [...], "layout": {...}}``: a trace for each population, and an invisible trace
        of full height with the hover text and link of each bin, so that a bar one pixel high can
        be hovered over and clicked.
    """
    places = _places(bins, chart.scale)
    heights = [[_height(chart, bars, count) for count in bars.counts] for bars in populations]
    top = _HEADROOM * max((height or 0 for bars in heights for height in bars), default=0)
    return {
        "data": [
            *(
                _trace(places, heights[number], bars.name, number)
                for number, bars in enumerate(populations)
            ),
            {
                **_bars(places, [top] * len(bins)),
                "opacity": 0,
                "showlegend": False,
                "customdata": list(links),
                "hovertext": [_hover_text(chart, *counts) for counts in _by_bin(bins, populations)],
                "hoverinfo": "text",
            },
            *(
                _line(_place(at, places, chart.scale), top, name, look)
                for (name, at), look in zip(lines.items(), _LINES, strict=False)
            ),
        ],
        "layout": {
            "height": _HEIGHT,
            "margin": {"l": 62, "r": 12, "t": 30, "b": 54},
            "barmode": "overlay",
            "hovermode": "closest",
            "dragmode": False,
            "showlegend": len(populations) > 1 or bool(lines),
            "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
            "xaxis": {
                **_ticks(chart, bins, places),
                "title": axis_title(chart.title, chart.unit),
                "range": _range(places),
                "fixedrange": True,
                "zeroline": False,
                "gridcolor": "--line",
                "linecolor": "--line-strong",
                "ticks": "outside",
                "tickcolor": "--line-strong",
                "tickangle": 0,
            },
            "yaxis": {
                "title": {
                    "text": f"{'% of ' if chart.as_shares else ''}{chart.counted}",
                    "font": {"size": FONT_SIZE},
                },
                "range": [0, top or 1],
                **({"dtick": 1} if top < _MANY_TICKS and not chart.as_shares else {"nticks": 5}),
                "fixedrange": True,
                "tickformat": ",~g",
                "gridcolor": "--line",
                "zerolinecolor": "--line-strong",
            },
        },
    }


def _height(chart: Chart, bars: Bars, count: int | None) -> float | None:
    return 100 * bars.share(count) if chart.as_shares and count is not None else count


def _trace(
    places: list[tuple[float, float]], heights: list[float | None], name: str, number: int
) -> Figure:
    return {
        **_bars(places, heights),
        "name": plotly_text(name),
        "marker": {"color": _FILLS[number], "line": {"color": COLOURS[number], "width": 1}},
        "hoverinfo": "skip",
    }


def _line(at: float, top: float, name: str, look: tuple[str, str]) -> Figure:
    colour, dash = look
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [at, at],
        "y": [0, top],
        "name": plotly_text(name),
        "line": {"color": colour, "dash": dash, "width": 2},
        "hoverinfo": "skip",
    }


def _place(value: float, places: list[tuple[float, float]], scale: Scale) -> float:
    if scale is Scale.LINEAR:
        return value
    return log10(value) if value >= 1 else sum(places[0]) / 2


def _bars(places: list[tuple[float, float]], heights: Sequence[float | None]) -> Figure:
    return {
        "type": "bar",
        "x": [left for left, _ in places],
        "width": [right - left for left, right in places],
        "offset": 0,
        "y": list(heights),
    }


def _places(bins: Sequence[Bin], scale: Scale) -> list[tuple[float, float]]:
    """Return the left and right edge of each bar on the axis."""
    if scale is Scale.LINEAR:
        return [(float(low), float(high)) for low, high in bins]
    above = [(log10(low), log10(high)) for low, high in bins if low]
    if not bins or bins[0] != ZERO:
        return above
    if not above:
        return [(-_ZERO_WIDTH, 0.0)]
    left, right = above[0]
    width = min(_ZERO_WIDTH, right - left)
    return [(left - 2 * width, left - width), *above]


def _range(places: list[tuple[float, float]]) -> list[float]:
    if not places:
        return [0.0, 1.0]
    left, right = places[0][0], places[-1][1]
    margin = _MARGIN * (right - left)
    return [left - margin, right + margin]


def _ticks(chart: Chart, bins: Sequence[Bin], places: list[tuple[float, float]]) -> Figure:
    if not bins:
        return {"tickvals": [], "ticktext": []}
    if chart.scale is Scale.LINEAR:
        values = _multiples(bins[0][0], bins[-1][1])
        ticks = [(float(value), chart.tick(value)) for value in values]
    else:
        above = [bound for bound in bins if bound[0]]
        ticks = _log_ticks(chart, above[0][0], above[-1][1]) if above else []
        if bins[0] == ZERO:
            zero, room = sum(places[0]) / 2, _TICK_ROOM * (places[-1][1] - places[0][0])
            ticks = [(zero, "0"), *(tick for tick in ticks if tick[0] - zero > room)]
    return {"tickvals": [at for at, _ in ticks], "ticktext": [text for _, text in ticks]}


def _log_ticks(chart: Chart, low: int, high: int) -> list[tuple[float, str]]:
    if chart.size != 1:
        scaled = log_ticks(low / chart.size, high / chart.size)
        return [(log10(value * chart.size), f"{value:,g}") for value in scaled]
    values = _round_values(low, high)
    if len(values) < _FEWEST_TICKS:
        values = _multiples(low, high)
    return [(log10(value), chart.tick(value)) for value in values]


def _multiples(low: int, high: int) -> list[int]:
    """Return a few multiples of a round number from `low` to `high`."""
    power = 10 ** max(0, len(str(high - low)) - 2)
    step = next(
        width * factor * power
        for factor in (1, 10, 100)
        for width in _ROUND
        if (high - low) // (width * factor * power) < _MANY_TICKS
    )
    return list(range(-(-low // step) * step, high + 1, step))


def _round_values(low: int, high: int) -> list[int]:
    """Return powers of ten from `low` to `high`, with two and five times them if few."""
    powers = [10**power for power in range(len(str(low)) - 1, len(str(high)))]
    inside = [power for power in powers if low <= power <= high]
    if len(inside) > _MANY_TICKS:
        return [power for power in inside if len(str(power)) % 3 == 1]
    if len(inside) >= _FEW_TICKS:
        return inside
    return [
        value for power in powers for value in (n * power for n in _ROUND) if low <= value <= high
    ]


def _by_bin(
    bins: Sequence[Bin], populations: Sequence[Bars]
) -> list[tuple[Bin, list[tuple[Bars, int | None]]]]:
    return [
        (bounds, [(bars, bars.counts[number]) for bars in populations])
        for number, bounds in enumerate(bins)
    ]


def _hover_text(chart: Chart, bounds: Bin, counts: list[tuple[Bars, int | None]]) -> str:
    lines = [f"<b>{bounds_in_words(chart.label, bounds)}</b>"]
    for bars, count in counts:
        name = f"{plotly_text(bars.name)}: " if len(counts) > 1 else ""
        text = "too few to show" if count is None else f"n = {count:,} ({bars.share(count):.1%})"
        lines.append(f"{name}{text}")
    return "<br>".join(lines)


def bounds_in_words(label: Callable[[int], str], bounds: Bin) -> str:
    """Format the bounds of a bin; a bin of a single value as this value."""
    low, high = bounds
    if high - low == 1:
        return f"{label(low)}"
    return f"{label(low)} to below {label(high)}"
