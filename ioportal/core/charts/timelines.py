"""Timelines of one principal as figures: steps of true width, shaded gaps and marks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from math import ceil
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

import polars as pl

from ioportal.core.charts.axes import log_axis, plotly_text, round_step
from ioportal.core.charts.palette import LOOKS, REST, colours
from ioportal.core.charts.time_axis import MEAN, drawn_unit, layout, number_format
from ioportal.core.units import Unit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from typing import TypeAlias

    from ioportal.core.charts.time_axis import Axis, Figure, Mark
    from ioportal.core.timelines import Steps

    _Run: TypeAlias = list[tuple[datetime, float]]

NO_LINKS: Mapping[str, str] = MappingProxyType({})
INTERVALS = "intervals"  # `meta` of the invisible trace
_NUDGE = 1 / 4_000  # of the range: less than a pixel
_NAMED_KINDS = 7  # layers of a stack before "other"
_VISIBLE_SHARE = 0.003  # of the range: shorter lines would be invisible and have dots
_DOT = 6  # size of a dot in pixels
_FAINT_DASH = "2px,7px"  # of means over a gap
_INTERVALS_TO_PEAK = 4  # between the ticks of an axis up to a value, at most
_DASHES = ("solid", "4px,2px", "1px,2px")


class Style(Enum):
    """Arrangement of kinds on one chart."""

    LINES = "lines"  # one line per kind
    STACK = "stack"  # parts of a whole, most frequent at the bottom
    PARTS = "parts"  # parts of a whole in the given order


@dataclass(frozen=True)
class Chart:
    """Content and style of a timeline."""

    name: str  # in addresses: never renamed
    title: str
    unit: str
    about: str
    style: Style
    labels: dict[str, str]  # by kind; default: the kind
    colours: Callable[[list[str]], dict[str, str]] = colours  # maps kinds to tokens


def figure(
    chart: Chart,
    steps: Steps,
    axis: Axis,
    marks: Sequence[Mark] = (),
    links: Mapping[str, str] = NO_LINKS,
) -> Figure:
    """Draw rates as lines or as a stack.

    Args:
        chart: content and style.
        steps: rates in the chart's unit.
        axis: the range; steps may extend beyond it.
        marks: times to draw as vertical lines.
        links: address of each kind, opened by a click on its layer of a stack.

    Returns:
        ``{"data": [...], "layout": {...}}``; without data an empty, fully shaded plot. Means over
        gaps are separate traces: dotted lines or hatched bars. An invisible trace before the others
        has the bounds of each step as hover text.
    """
    chart, [steps] = _in_larger_unit(chart, [steps])
    traces = (
        _lines(chart, steps, axis)
        if chart.style is Style.LINES
        else _stack(chart, steps, axis, links)
    )
    gaps = steps.gaps(axis.start, axis.past_end)
    return {
        "data": [_intervals(chart.style, steps, axis), *traces],
        "layout": {
            **layout(
                axis, gaps, marks, title=chart.title, unit=chart.unit, highest=highest_of(steps)
            ),
            "barmode": "stack",
            "bargap": 0,
        },
    }


def overlay(
    chart: Chart, runs: Sequence[tuple[str, Steps, Axis]], axis: Axis, *, log: bool = False
) -> Figure:
    """Draw the rates of several runs as lines over each other, aligned by their axes.

    Args:
        chart: title and unit.
        runs: at most as many as `palette.LOOKS`: name, steps of one kind in the chart's unit, and
            the axis that places the run's times. Axes have the same unit, each with its own origin.
        axis: the range that contains all runs.
        log: whether the rates have a logarithmic axis, which omits zeros.

    Returns:
        ``{"data": [...], "layout": {...}}``: a line for each run, interrupted where it was not
        observed, and a dotted one for means over a gap.
    """
    chart, drawn = _in_larger_unit(chart, [steps for _, steps, _ in runs])
    runs = [(name, steps, own) for (name, _, own), steps in zip(runs, drawn, strict=True)]
    highest = max(map(highest_of, drawn), default=0.0)
    lines = []
    for (name, steps, own_axis), look in zip(runs, LOOKS, strict=False):
        text, hover = plotly_text(name), _hover(chart, steps)
        [kind] = steps.kinds
        observed, means = (_runs(frame, kind, own_axis) for frame in _by_certainty(steps))
        style = {"color": look.token, "width": 1.8, "dash": look.dash}
        lines.append(_line(text, observed, own_axis, style, hover))
        if means:
            faint = _line(text, means, own_axis, {**style, "dash": _FAINT_DASH}, hover)
            lines.append(_as_mean(faint, alone=not observed))
    base = layout(axis, (), (), title=chart.title, unit=chart.unit, highest=highest)
    lowest = min(filter(None, (_lowest_of(steps) for _, steps, _ in runs)), default=0.0)
    scale = (
        {**log_axis(lowest, highest), "rangemode": "normal"} if log and lowest else _up_to(highest)
    )
    return {"data": lines, "layout": {**base, "yaxis": {**base["yaxis"], **scale}}}


def on_common_axes(drawn: Figure, axis: Axis, highest: float) -> Figure:
    """Return a figure with the ranges of several figures: of `axis`, and from zero to `highest`."""
    axes = drawn["layout"]
    time = {**axis.attributes, "range": [axis.place(axis.start), axis.place(axis.end)]}
    common = {"xaxis": {**axes["xaxis"], **time}, "yaxis": {**axes["yaxis"], **_up_to(highest)}}
    return {**drawn, "layout": {**axes, **common}}


def _up_to(highest: float) -> Figure:
    """Return range and ticks of an axis from zero to a tick that is not below a value."""
    if not highest:
        return {"range": [0, 1]}
    step = round_step(highest / _INTERVALS_TO_PEAK)
    return {"range": [0, step * ceil(highest / step)], "tick0": 0, "dtick": step}


def _intervals(style: Style, steps: Steps, axis: Axis) -> Figure:
    """Return an invisible trace at the places of the others."""
    bounds = steps.frame.select("start", "end").rows()
    texts = [axis.interval_text(start, end) for start, end in bounds]
    if style is Style.LINES:
        points = [_points(axis, start, end) for start, end in bounds]
        places: Figure = {
            "type": "scatter",
            "mode": "none",
            "x": [axis.place(moment) for step in points for moment in step],
        }
        texts = [text for text in texts for _ in range(3)]
    else:
        places = {
            "type": "bar",
            **_places(steps.frame, axis),
            "marker": {"color": "rgba(0,0,0,0)"},
        }
    return {
        **places,
        "y": [0] * len(texts),
        "meta": INTERVALS,
        "hovertext": texts,
        "hovertemplate": "%{hovertext}<extra></extra>",
        "showlegend": False,
    }


def _lowest_of(steps: Steps) -> float | None:
    """Return the lowest rate above zero of a single kind; None: there is none."""
    [kind] = steps.kinds
    return cast("float | None", steps.frame.filter(pl.col(kind) > 0)[kind].min())


def _in_larger_unit(chart: Chart, runs: Sequence[Steps]) -> tuple[Chart, list[Steps]]:
    """Return a chart of microseconds and its steps in ms or s, if the values are so large."""
    if chart.unit != Unit.MICROSECONDS:
        return chart, list(runs)
    size, unit = drawn_unit(Unit.MICROSECONDS, max(map(highest_of, runs), default=0.0))
    frames = (
        steps.frame.with_columns(pl.col(kind) / size for kind in steps.kinds) for steps in runs
    )
    drawn = [replace(steps, frame=frame) for steps, frame in zip(runs, frames, strict=True)]
    return replace(chart, unit=unit), drawn


def highest_of(steps: Steps) -> float:
    """Return the highest rate of any kind, 0 without steps."""
    highest: float = steps.frame.select(
        pl.max_horizontal(0, *(pl.col(kind).max() for kind in steps.kinds))
    ).item()
    return highest


def nonzero_kinds(steps: Steps) -> list[str]:
    """Return the kinds with nonzero counts, most frequent first."""
    seconds = (pl.col("end") - pl.col("start")).dt.total_microseconds()
    totals = steps.frame.select((pl.col(kind) * seconds).sum() for kind in steps.kinds)
    counts = {kind: totals[kind].item() if totals.height else 0 for kind in steps.kinds}
    return sorted((kind for kind in steps.kinds if counts[kind]), key=lambda kind: -counts[kind])


def _lines(chart: Chart, steps: Steps, axis: Axis) -> list[Figure]:
    tokens = chart.colours(list(steps.kinds))
    observed, means = _by_certainty(steps)

    def line(kind: str, frame: pl.DataFrame, look: Figure) -> Figure:
        look = {"color": tokens[kind], **look}
        return _line(_name(chart, kind), _runs(frame, kind, axis), axis, look, _hover(chart, steps))

    lines = [
        line(kind, observed, {"width": 1.6, "dash": _DASHES[number % len(_DASHES)]})
        for number, kind in enumerate(steps.kinds)
    ]
    faint = [
        _as_mean(line(kind, means, {"width": 1.6, "dash": _FAINT_DASH}), alone=observed.is_empty())
        for kind in steps.kinds
        if not means.is_empty()
    ]
    first = steps.kinds[0]
    # A separate trace, because the fill of a line would extend across gaps.
    outline = _runs(observed, first, axis)
    area = {
        "type": "scatter",
        "mode": "none",
        "legendgroup": _name(chart, first),
        **_joined([[(run[0][0], 0.0), *run, (run[-1][0], 0.0)] for run in outline], axis),
        "fill": "toself",
        "fillcolor": f"{tokens[first]}/0.14",
        "hoverinfo": "skip",
        "showlegend": False,
    }
    return [area, *lines, *faint]


def _line(name: str, runs: list[_Run], axis: Axis, look: Figure, hover: str) -> Figure:
    dots = _dots(runs, axis)
    return {
        "type": "scatter",
        "mode": "lines+markers" if any(dots) else "lines",
        "name": name,
        "legendgroup": name,
        **_joined(runs, axis),
        "line": look,
        "marker": {"color": look["color"], "size": dots, "opacity": 1, "line": {"width": 0}},
        "connectgaps": False,
        "hovertemplate": hover,
    }


def _name(chart: Chart, kind: str) -> str:
    return plotly_text(chart.labels.get(kind, kind))


def _by_certainty(steps: Steps) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return observed steps, and means over gaps between distant reads."""
    is_mean = pl.col("observed") == 0
    return steps.frame.filter(~is_mean), steps.frame.filter(is_mean)


def _as_mean(trace: Figure, *, alone: bool) -> Figure:
    """Mark a trace as means over gaps; the legend lists it only if `alone`."""
    return {**trace, "name": f"{trace['name']}, {MEAN}", "showlegend": alone}


def _hover(chart: Chart, steps: Steps) -> str:
    form = number_format(highest_of(steps), chart.unit)
    return f"%{{y:,.4~{form[-1]}}} {chart.unit}"


def _runs(frame: pl.DataFrame, kind: str, axis: Axis) -> list[_Run]:
    """Return the points of the steps, a list for each run of adjacent steps."""
    runs: list[_Run] = []
    reached = None
    for start, end, rate in frame.select("start", "end", kind).drop_nulls().iter_rows():
        if start != reached:
            runs.append([])
        runs[-1] += [(moment, rate) for moment in _points(axis, start, end)]
        reached = end
    return runs


def _points(axis: Axis, start: datetime, end: datetime) -> tuple[datetime, ...]:
    """Return corners and middle of a step; the pointer selects the nearest point.

    The corners of adjacent steps differ, because at the same time Plotly selects the first.
    """
    nudge = min(_NUDGE * (axis.end - axis.start), (end - start) / 4)
    return start + nudge, start + (end - start) / 2, end - nudge


def _joined(runs: list[_Run], axis: Axis) -> Figure:
    """Return the corners of all runs, separated by nulls that interrupt the line."""
    corners = [
        corner
        for run in runs
        for corner in (*((axis.place(at), rate) for at, rate in run), (None, None))
    ][:-1]
    return {"x": [x for x, _ in corners], "y": [y for _, y in corners]}


def _dots(runs: list[_Run], axis: Axis) -> list[int]:
    """Return the dot size of each point of `_joined`: 0 where the line is visible."""
    shortest = (axis.end - axis.start) * _VISIBLE_SHARE
    sizes = [_DOT if run[-1][0] - run[0][0] < shortest else 0 for run in runs]
    return [size for run, size in zip(runs, sizes, strict=True) for _ in (*run, None)][:-1]


def _stack(chart: Chart, steps: Steps, axis: Axis, links: Mapping[str, str]) -> list[Figure]:
    kinds = list(steps.kinds) if chart.style is Style.PARTS else nonzero_kinds(steps)
    largest, smaller = kinds[:_NAMED_KINDS], kinds[_NAMED_KINDS:]
    tokens = {**chart.colours(largest), "other": REST}
    observed, means = _by_certainty(steps)

    def bars(kind: str, frame: pl.DataFrame, places: Figure, look: Figure) -> Figure:
        heights = pl.sum_horizontal(smaller) if kind == "other" else pl.col(kind)
        return {
            "type": "bar",
            "name": _name(chart, kind),
            "legendgroup": _name(chart, kind),
            **places,
            "y": frame.select(heights).to_series().to_list(),
            "marker": {"color": tokens[kind], "line": {"width": 0}, **look},
            "hovertemplate": _hover(chart, steps),
            **({"customdata": [links[kind]] * frame.height} if kind in links else {}),
        }

    layers = [*largest, *(["other"] if smaller else [])]
    hatched = {"pattern": {"shape": "/", "size": 6, "solidity": 0.2}}
    return [
        *(bars(kind, observed, _places(observed, axis), {}) for kind in layers),
        *(
            _as_mean(bars(kind, means, _places(means, axis), hatched), alone=observed.is_empty())
            for kind in layers
            if not means.is_empty()
        ),
    ]


def _places(frame: pl.DataFrame, axis: Axis) -> Figure:
    """Return the places of the bars, equal in every layer: `x` is the middle."""
    bounds = frame.select("start", "end").rows()
    widths = [axis.length(end - start) for start, end in bounds]
    return {
        "x": [axis.place(start + (end - start) / 2) for start, end in bounds],
        "width": widths,
        "offset": [-width / 2 for width in widths],
    }
