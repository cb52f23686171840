"""Charts of the arms of a comparison, with the looks of `core.charts.palette.LOOKS`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ioportal.core.charts.axes import FONT_SIZE, axis_title, log_axis, plotly_text, shown_unit
from ioportal.core.charts.palette import LOOKS, REST
from ioportal.core.charts.time_axis import layout, number_format, text_label

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from ioportal.core.charts.palette import Look
    from ioportal.core.charts.time_axis import Axis, Figure, Mark
    from ioportal.core.timelines import Gap

_HEIGHT = 290
_ROW = 46  # pixels of a row of a chart with categories
_MARGIN = {"l": 66, "r": 14, "t": 30, "b": 54}
_ABOVE = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "traceorder": "normal"}
_BOX = (5, 25, 50, 75, 95)  # quantiles of a box in per cent
_BOX_PARTS = ("lowerfence", "q1", "median", "q3", "upperfence")
_BAND = 0.16  # opacity
_DAY = timedelta(days=1)
_REGION = 0.1
_ROOM = 0.04  # at either end of an axis, as a share of its range


@dataclass(frozen=True)
class Quantity:
    """The drawn quantity: title, unit, and whether its axis is logarithmic."""

    title: str
    unit: str
    log: bool = False


@dataclass(frozen=True)
class Distribution:
    """The distribution of an arm.

    `quantiles` has the values at 0 %, 1 %, ..., 100 % in the unit of the quantity (None: hidden).
    Without values it is empty.
    """

    name: str
    quantiles: Sequence[float | None]
    mean: float | None = None

    @property
    def highest(self) -> float:
        """The highest known value, 0 without values."""
        return max((value for value in self.quantiles if value is not None), default=0.0)


@dataclass(frozen=True)
class Days:
    """The days of an arm: middle of each day, median, quartiles and number of jobs."""

    name: str
    middles: Sequence[datetime]
    medians: Sequence[float]
    p25: Sequence[float]
    p75: Sequence[float]
    jobs: Sequence[int]


@dataclass(frozen=True)
class Region:
    """A named period to shade; `number` is the number of its arm, None for an excluded period."""

    name: str
    start: datetime
    end: datetime
    number: int | None


@dataclass(frozen=True)
class Shares:
    """Shares of an arm by category, in the order of all arms; None: unknown."""

    name: str
    shares: Sequence[float | None]


@dataclass(frozen=True)
class Ratio:
    """The ratio of an arm to the first arm by a metric, with its interval; None: unknown."""

    name: str
    ratio: float
    low: float | None
    high: float | None


def distributions(quantity: Quantity, arms: Sequence[Distribution]) -> Figure:
    """Draw empirical distribution functions: the share of jobs up to a value.

    Args:
        quantity: the quantity; a logarithmic axis omits zeros.
        arms: at most as many as `LOOKS`.
    """
    highest = max((arm.highest for arm in arms), default=0.0)
    drawn: list[float] = []
    number = f".4~{number_format(highest, quantity.unit)[-1]}"
    data = []
    for arm, look in zip(arms, LOOKS, strict=False):
        points = [
            (value, percent)
            for percent, value in enumerate(arm.quantiles)
            if value is not None and (value > 0 or not quantity.log)
        ]
        drawn += [value for value, _ in points]
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": plotly_text(arm.name),
                "x": [value for value, _ in points],
                "y": [percent for _, percent in points],
                "line": _line(look),
                "hovertemplate": f"%{{y}} % up to %{{x:{number}}} {shown_unit(quantity.unit)}",
            }
        )
    return {
        "data": data,
        "layout": {
            **_layout(),
            "hovermode": "closest",
            "xaxis": _fitting_axis(quantity, drawn),
            "yaxis": {**_count_axis("% of jobs"), "range": [0, 101], "dtick": 25},
        },
    }


def boxes(quantity: Quantity, arms: Sequence[Distribution]) -> Figure:
    """Draw a box for each arm: quartiles, median and mean, with whiskers from p5 to p95.

    Args:
        quantity: the quantity.
        arms: at most as many as `arms.LOOKS`; those with a hidden quantile have no box.
    """
    drawn = [
        (arm, look, values)
        for arm, look in zip(arms, LOOKS, strict=False)
        if arm.quantiles and None not in (values := [arm.quantiles[at] for at in _BOX])
    ]
    known = [value for arm, _, values in drawn for value in (*values, arm.mean)]
    return {
        "data": [
            {
                "type": "box",
                "orientation": "h",
                "name": plotly_text(arm.name),
                "y": [plotly_text(arm.name)],
                **dict(zip(_BOX_PARTS, ([value] for value in values), strict=True)),
                "mean": [arm.mean],
                "fillcolor": f"{look.token}/0.25",
                "line": {"color": look.token, "width": 1.8},
                "whiskerwidth": 0.5,
                "showlegend": False,
            }
            for arm, look, values in drawn
        ],
        "layout": {
            **_layout(_ROW * len(drawn)),
            "hovermode": "closest",
            "xaxis": _fitting_axis(quantity, [value for value in known if value is not None]),
            "yaxis": _categories(),
        },
    }


def daily_medians(
    quantity: Quantity,
    arms: Sequence[Days],
    axis: Axis,
    marks: Sequence[Mark],
    gaps: Sequence[Gap] = (),
) -> Figure:
    """Draw the median of each day with a band between the quartiles.

    Lines and bands are interrupted at days without values.

    Args:
        quantity: the quantity.
        arms: at most as many as `arms.LOOKS`.
        axis: the range of all days.
        marks: edges of periods, and changes at the site.
        gaps: intervals to shade.
    """
    highest = max((value for days in arms for value in days.p75), default=0.0)
    base = layout(axis, gaps, marks, title=quantity.title, unit=quantity.unit, highest=highest)
    if quantity.log:
        values = [value for days in arms for value in (*days.p25, *days.p75) if value > 0]
        base["yaxis"] |= {"rangemode": "normal", **log_axis(min(values), max(values))}
    number = f",.4~{number_format(highest, quantity.unit)[-1]}"
    data: list[Figure] = []
    for days, look in zip(arms, LOOKS, strict=False):
        places = [axis.place(middle) for middle in days.middles]
        runs = _consecutive(days.middles)
        name = plotly_text(days.name)
        band = {
            "type": "scatter",
            "mode": "none",
            "legendgroup": name,
            "x": _interrupted([*places[run], *places[run][::-1]] for run in runs),
            "y": _interrupted([*days.p25[run], *days.p75[run][::-1]] for run in runs),
            "fill": "toself",
            "fillcolor": f"{look.token}/{_BAND}",
            "hoverinfo": "skip",
            "showlegend": False,
        }
        line = {
            "type": "scatter",
            "mode": "lines+markers",
            "name": name,
            "legendgroup": name,
            "x": _interrupted(places[run] for run in runs),
            "y": _interrupted(days.medians[run] for run in runs),
            "customdata": _interrupted(days.jobs[run] for run in runs),
            "line": _line(look),
            "marker": {"size": 6, "symbol": look.symbol, "color": look.token},
            "hovertemplate": f"%{{y:{number}}} {shown_unit(quantity.unit)} of %{{customdata}} jobs",
        }
        data += [band, line] if len(places) > len(runs) else [line]
    return {"data": data, "layout": base}


def _consecutive(middles: Sequence[datetime]) -> list[slice]:
    """Return the runs of consecutive days."""
    ends = [n for n, (day, following) in enumerate(pairwise(middles), 1) if following - day > _DAY]
    return [slice(*bounds) for bounds in pairwise([0, *ends, len(middles)])] if middles else []


def _interrupted(runs: Iterable[Sequence[Any]]) -> list[Any]:
    """Join runs with None in between, where Plotly interrupts lines and areas."""
    return [value for run in runs for value in (*run, None)][:-1]


def with_regions(drawn: Figure, axis: Axis, regions: Sequence[Region]) -> Figure:
    """Return a figure over time with named periods shaded."""
    base = drawn["layout"]
    shades = [
        {
            "type": "rect",
            "x0": axis.place(region.start),
            "x1": axis.place(region.end),
            "y0": 0,
            "y1": 1,
            "yref": "paper",
            "layer": "below",
            "fillcolor": f"{token_of(region.number)}/{_REGION}",
            "line": {"width": 0},
        }
        for region in regions
    ]
    middles = [region.start + (region.end - region.start) / 2 for region in regions]
    labels = [
        text_label(axis.place(middle), plotly_text(region.name), "--ink-soft", "center")
        for middle, region in zip(middles, regions, strict=True)
    ]
    texts = sorted([*base["annotations"], *labels], key=itemgetter("x"))
    return {
        **drawn,
        "layout": {**base, "shapes": [*base["shapes"], *shades], "annotations": texts},
    }


def shares(title: str, categories: Sequence[str], arms: Sequence[Shares]) -> Figure:
    """Draw shares of a whole by category, a bar for each arm; categories from top to bottom."""
    names = [plotly_text(category) for category in categories]
    return {
        "data": [
            {
                "type": "bar",
                "orientation": "h",
                "name": plotly_text(arm.name),
                "y": names,
                "x": [None if share is None else 100 * share for share in arm.shares[: len(names)]],
                "marker": {"color": look.token, **_pattern(look)},
                "hovertemplate": "%{x:.2f} %",
            }
            for arm, look in zip(arms, LOOKS, strict=False)
        ],
        "layout": {
            **_layout(18 * len(names) * max(1, len(arms))),
            "barmode": "group",
            "hovermode": "y unified",
            "xaxis": {
                **_value_axis(Quantity(title, "%"), 0),
                "tickformat": "~g",
                "rangemode": "tozero",
            },
            "yaxis": _categories(),
        },
    }


def ratios(rows: Sequence[tuple[str, Sequence[Ratio | None]]], first: str) -> Figure:
    """Draw ratios to the first arm with their intervals, a row for each metric.

    Args:
        rows: title of a metric, and the ratio of each further arm; None: unknown.
        first: name of the first arm.

    Returns:
        ``{"data": [...], "layout": {...}}`` with a logarithmic axis around 1. Arms of a row are
        next to each other.
    """
    names = [plotly_text(title) for title, _ in rows]
    known_ratios = [ratio for _, arm in rows for ratio in arm if ratio]
    bounds = [bound for each in known_ratios for bound in (each.ratio, each.low, each.high)]
    arms = len(rows[0][1]) if rows else 0
    step = 0.8 / max(1, arms)
    data = []
    for number in range(arms):
        look = LOOKS[number + 1]
        known = [(row, ratio) for row, (_, arm) in enumerate(rows) if (ratio := arm[number])]
        offset = (number - (arms - 1) / 2) * step
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": plotly_text(known[0][1].name) if known else "",
                "showlegend": bool(known),
                "x": [ratio.ratio for _, ratio in known],
                "y": [row + offset for row, _ in known],
                "customdata": [names[row] for row, _ in known],
                "error_x": {
                    "type": "data",
                    "symmetric": False,
                    "array": [(ratio.high or ratio.ratio) - ratio.ratio for _, ratio in known],
                    "arrayminus": [ratio.ratio - (ratio.low or ratio.ratio) for _, ratio in known],
                    "color": look.token,
                    "thickness": 2,
                },
                "marker": {"color": look.token, "symbol": look.symbol, "size": 9},
                "hovertemplate": "%{customdata}: %{x:.3~r}<extra></extra>",
            }
        )
    return {
        "data": data,
        "layout": {
            **_layout(26 * len(rows)),
            "showlegend": arms > 1,
            "hovermode": "closest",
            "xaxis": {
                **_fitting_axis(
                    Quantity(f"Ratio to {first}", "", log=True),
                    [1.0, *(bound for bound in bounds if bound is not None)],
                ),
                "tickformat": "~r",
            },
            "yaxis": {
                **_categories(),
                "tickvals": list(range(len(names))),
                "ticktext": names,
                "range": [len(names) - 0.5, -0.5],
            },
            "shapes": [
                {
                    "type": "line",
                    "x0": 1,
                    "x1": 1,
                    "y0": 0,
                    "y1": 1,
                    "yref": "paper",
                    "line": {"color": "--ink-soft", "width": 1.2, "dash": "dot"},
                }
            ],
        },
    }


def _layout(body: int = 0) -> Figure:
    """Return the common layout; `body` is the height of the plot without margins."""
    height = body + _MARGIN["t"] + _MARGIN["b"] if body else _HEIGHT
    return {
        "height": height,
        "margin": dict(_MARGIN),
        "dragmode": False,
        "showlegend": True,
        "legend": dict(_ABOVE),
    }


def _fitting_axis(quantity: Quantity, values: Sequence[float]) -> Figure:
    """Return an axis whose range has all values inside, even if they are equal."""
    axis = _value_axis(quantity, max(values, default=0.0))
    drawn = [value for value in values if value > 0] if quantity.log else values
    if not drawn:
        return axis
    low, high = min(drawn), max(drawn)
    if quantity.log:
        return {**axis, **log_axis(low, high)}
    room = _ROOM * (high - low) or abs(high) / 2 or 1.0
    return {**axis, "range": [low - room, high + room]}


def _value_axis(quantity: Quantity, highest: float) -> Figure:
    return {
        "nticks": 6,
        "tickangle": 0,
        "title": axis_title(quantity.title, quantity.unit),
        "tickformat": number_format(highest, quantity.unit),
        "fixedrange": True,
        "zeroline": False,
        "gridcolor": "--line",
        "linecolor": "--line-strong",
        "ticks": "outside",
        "tickcolor": "--line-strong",
    }


def _count_axis(title: str) -> Figure:
    return {
        "title": {"text": title, "font": {"size": FONT_SIZE}},
        "fixedrange": True,
        "gridcolor": "--line",
        "zerolinecolor": "--line-strong",
    }


def _categories() -> Figure:
    return {
        "autorange": "reversed",
        "automargin": True,
        "fixedrange": True,
        "gridcolor": "--line",
        "zeroline": False,
    }


def _line(look: Look) -> Figure:
    return {"color": look.token, "width": 1.8, "dash": look.dash}


def token_of(number: int | None) -> str:
    """Return the token of an arm by its number; None: outside of all arms."""
    return REST if number is None else LOOKS[number].token


def _pattern(look: Look) -> Figure:
    return {"pattern": {"shape": look.pattern, "size": 6, "solidity": 0.25}}
