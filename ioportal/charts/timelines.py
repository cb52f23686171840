"""Timelines of one principal as Plotly figures: steps of true width, gaps shaded, breaks marked.

A figure is a plain dictionary as Plotly's JavaScript takes it. Its colours are tokens
(`charts.palette`, and the page's ``--ink``, ``--line``, ``--gap``, ``--warn``, ``--bad``), with an
opacity behind a slash, that whoever draws it resolves; its times are local to `TimeAxis.offset`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, timedelta
from enum import Enum
from math import ceil
from typing import TYPE_CHECKING, Any

import polars as pl

from ioportal.analysis.timelines import Known
from ioportal.charts.palette import REST, colours

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from typing import TypeAlias

    from ioportal.analysis.timelines import Gap, Steps

    _Run: TypeAlias = list[tuple[datetime, float]]

Figure = dict[str, Any]

_NAMED_KINDS = 7  # of a stack; more are one layer, "other"
_LABELLED_SHARE = 0.05  # of the range: shorter gaps carry no words
_SEEN_SHARE = 0.003  # of the range: a line that is shorter would be no pixel wide,
_DOT = 6  # and has dots of so many pixels
_MOST_TICKS = 6
_TICKS = [  # apart from each other; what is longer comes in whole days
    *(timedelta(milliseconds=n) for n in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    *(timedelta(seconds=n) for n in (1, 2, 5, 10, 15, 30)),
    *(timedelta(minutes=n) for n in (1, 2, 5, 10, 20, 30)),
    *(timedelta(hours=n) for n in (1, 2, 3, 6, 12)),
]
_HEIGHT = 230
_THOUSAND = 1_000
_DASHES = ("solid", "4px,2px", "1px,2px")
_MEAN = "mean over a gap"
_GAP_WORDS = {
    Known.NOTHING: "not observed",
    Known.MEAN: _MEAN,
    Known.PART: "not all were read",
}


class Style(Enum):
    """How kinds stand on one chart."""

    LINES = "lines"  # beside each other
    STACK = "stack"  # on top of each other: parts of a whole


@dataclass(frozen=True)
class Chart:
    """What a timeline shows, whatever the data."""

    name: str  # in addresses: never renamed
    title: str
    unit: str
    about: str
    style: Style
    labels: dict[str, str]  # kind to words; kinds that it lacks are their own words


@dataclass(frozen=True)
class TimeAxis:
    """The range that is shown and the clock on the wall: one offset for all of it.

    With a zone's own clock an hour would come twice, or never, where daylight saving changes.
    """

    start: datetime
    end: datetime
    offset: timedelta

    def local(self, moment: datetime) -> str:
        """Return a moment as Plotly's axis takes it."""
        local = moment.astimezone(UTC).replace(tzinfo=None) + self.offset
        return local.isoformat(timespec="milliseconds")

    @property
    def ticks(self) -> Figure:
        """Ticks as Plotly's axis takes them: its own differ from chart to chart with their bars."""
        whole_days = timedelta(days=ceil((self.end - self.start) / timedelta(days=_MOST_TICKS)))
        fitting = (tick for tick in _TICKS if (self.end - self.start) / tick <= _MOST_TICKS)
        apart = next(fitting, whole_days)
        return {"tick0": self.local(self.start)[:10], "dtick": apart / timedelta(milliseconds=1)}

    def share(self, gap: Gap) -> float:
        """Return how much of the range a gap takes."""
        return (gap.end - gap.start) / (self.end - self.start)


class Meaning(Enum):
    """Why a moment is marked; the value is the token of its colour."""

    RUN = "--ink-soft"  # the job begins or ends
    BREAK = "--warn"  # what is counted changed
    FAULT = "--bad"  # figures around it may be wrong

    @property
    def height(self) -> float:
        """Where its words stand in the plot: 0 bottom, 1 top."""
        return 0.84 if self is Meaning.FAULT else 0.97


@dataclass(frozen=True)
class Mark:
    """A moment that matters for reading the chart."""

    at: datetime
    text: str
    meaning: Meaning


def figure(chart: Chart, steps: Steps, axis: TimeAxis, marks: Sequence[Mark] = ()) -> Figure:
    """Draw rates as `chart` says.

    Args:
        chart: what is drawn; its style decides between lines and a stack.
        steps: rates in the chart's unit.
        axis: the range; steps may reach beyond it.
        marks: moments to draw as vertical lines.

    Returns:
        ``{"data": [...], "layout": {...}}``; no data gives an empty, wholly shaded plot. Means
        over gaps are traces of their own: dotted lines, hatched bars.
    """
    traces = (
        _lines(chart, steps, axis) if chart.style is Style.LINES else _stack(chart, steps, axis)
    )
    gaps = steps.gaps(axis.start, axis.end)
    return {
        "data": traces,
        "layout": {
            "height": _HEIGHT,
            "margin": {"l": 62, "r": 12, "t": 30, "b": 26},
            "barmode": "stack",
            "bargap": 0,
            "hovermode": "x unified",
            "dragmode": "zoom",
            "showlegend": True,
            "legend": {
                "orientation": "h",
                "x": 0,
                "y": 1.02,
                "yanchor": "bottom",
                "traceorder": "normal",
            },
            "xaxis": {
                "type": "date",
                "range": [axis.local(axis.start), axis.local(axis.end)],
                **axis.ticks,
                "gridcolor": "--line",
                "linecolor": "--line-strong",
                "ticks": "outside",
                "tickcolor": "--line-strong",
                "hoverformat": "%Y-%m-%d %H:%M:%S",
            },
            "yaxis": {
                "title": {"text": chart.unit, "font": {"size": 11}},
                "rangemode": "tozero",
                "fixedrange": True,
                "tickformat": _number_format(steps),
                "nticks": 5,
                "gridcolor": "--line",
                "zerolinecolor": "--line-strong",
            },
            "shapes": [
                *(_shade(axis, gap) for gap in gaps),
                *(_mark_line(axis, mark) for mark in marks),
            ],
            "annotations": [
                *(_gap_words(axis, gap) for gap in gaps if axis.share(gap) > _LABELLED_SHARE),
                *_mark_words(axis, marks),
            ],
        },
    }


def _number_format(steps: Steps) -> str:
    """Return d3's format: with k, M and G from a thousand on, and never with m for a thousandth."""
    highest = steps.frame.select(
        pl.max_horizontal(0, *(pl.col(k).max() for k in steps.kinds))
    ).item()
    return "~s" if highest >= _THOUSAND else "~g"


def shown_kinds(steps: Steps) -> list[str]:
    """Return the kinds that happened at all, most frequent first."""
    seconds = (pl.col("end") - pl.col("start")).dt.total_microseconds()
    totals = steps.frame.select((pl.col(kind) * seconds).sum() for kind in steps.kinds)
    counts = {kind: totals[kind].item() if totals.height else 0 for kind in steps.kinds}
    return sorted((kind for kind in steps.kinds if counts[kind]), key=lambda kind: -counts[kind])


def _lines(chart: Chart, steps: Steps, axis: TimeAxis) -> list[Figure]:
    given = colours(list(steps.kinds))
    observed, means = _by_certainty(steps)

    def line(kind: str, frame: pl.DataFrame, look: Figure) -> Figure:
        runs = _runs(frame, kind)
        dots = _dots(runs, axis)
        return {
            "type": "scatter",
            "mode": "lines+markers" if any(dots) else "lines",
            "name": chart.labels.get(kind, kind),
            **_joined(runs, axis),
            "line": {"color": given[kind], **look},
            "marker": {"color": given[kind], "size": dots, "opacity": 1, "line": {"width": 0}},
            "connectgaps": False,
            "hovertemplate": _hover(chart, steps),
        }

    lines = [
        line(kind, observed, {"width": 1.6, "dash": _DASHES[number % len(_DASHES)]})
        for number, kind in enumerate(steps.kinds)
    ]
    faint = [
        _as_mean(line(kind, means, {"width": 1.6, "dash": "2px,7px"}), alone=observed.is_empty())
        for kind in steps.kinds
        if not means.is_empty()
    ]
    first = steps.kinds[0]
    # An area of its own: the one that a line fills would reach across gaps.
    outline = _runs(observed, first)
    area = {
        "type": "scatter",
        "mode": "none",
        **_joined([[(run[0][0], 0.0), *run, (run[-1][0], 0.0)] for run in outline], axis),
        "fill": "toself",
        "fillcolor": f"{given[first]}/0.14",
        "hoverinfo": "skip",
        "showlegend": False,
    }
    return [area, *lines, *faint]


def _by_certainty(steps: Steps) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return what was observed, and what is a mean between two reads that are far apart."""
    is_mean = pl.col("observed") == 0
    return steps.frame.filter(~is_mean), steps.frame.filter(is_mean)


def _as_mean(trace: Figure, *, alone: bool) -> Figure:
    """Say of a trace that it shows means over gaps; unless it is `alone`, its colour is known."""
    return {**trace, "name": f"{trace['name']}, {_MEAN}", "showlegend": alone}


def _hover(chart: Chart, steps: Steps) -> str:
    return f"%{{y:,.4~{_number_format(steps)[-1]}}} {chart.unit}"


def _runs(frame: pl.DataFrame, kind: str) -> list[_Run]:
    """Return the corners of the steps, a list for each run of steps that meet."""
    runs: list[_Run] = []
    reached = None
    for start, end, rate in frame.select("start", "end", kind).drop_nulls().iter_rows():
        if start != reached:
            runs.append([])
        runs[-1] += [(start, rate), (end, rate)]
        reached = end
    return runs


def _joined(runs: list[_Run], axis: TimeAxis) -> Figure:
    """Return the corners of all runs; a null lifts the pen between two."""
    corners = [
        corner
        for run in runs
        for corner in (*((axis.local(at), rate) for at, rate in run), (None, None))
    ][:-1]
    return {"x": [x for x, _ in corners], "y": [y for _, y in corners]}


def _dots(runs: list[_Run], axis: TimeAxis) -> list[int]:
    """Return the size of a dot on each point of `_joined`: 0 where the line itself is seen."""
    shortest = (axis.end - axis.start) * _SEEN_SHARE
    sizes = [_DOT if run[-1][0] - run[0][0] < shortest else 0 for run in runs]
    return [size for run, size in zip(runs, sizes, strict=True) for _ in (*run, None)][:-1]


def _stack(chart: Chart, steps: Steps, axis: TimeAxis) -> list[Figure]:
    kinds = shown_kinds(steps)
    named, others = kinds[:_NAMED_KINDS], kinds[_NAMED_KINDS:]
    given = {**colours(named), "other": REST}
    observed, means = _by_certainty(steps)

    def bars(kind: str, frame: pl.DataFrame, look: Figure) -> Figure:
        heights = pl.sum_horizontal(others if kind == "other" else [kind])
        milliseconds = (pl.col("end") - pl.col("start")).dt.total_microseconds() / 1e3
        return {
            "type": "bar",
            "name": chart.labels.get(kind, kind),
            "x": [axis.local(start) for start in frame["start"]],
            "y": frame.select(heights).to_series().to_list(),
            "width": frame.select(milliseconds).to_series().to_list(),
            "offset": 0,
            "marker": {"color": given[kind], "line": {"width": 0}, **look},
            "hovertemplate": _hover(chart, steps),
        }

    layers = [*named, *(["other"] if others else [])]
    hatched = {"pattern": {"shape": "/", "size": 6, "solidity": 0.2}}
    return [
        *(bars(kind, observed, {}) for kind in layers),
        *(
            _as_mean(bars(kind, means, hatched), alone=observed.is_empty())
            for kind in layers
            if not means.is_empty()
        ),
    ]


def _mark_words(axis: TimeAxis, marks: Sequence[Mark]) -> list[Figure]:
    """Label marks above the plot, those of one moment together; the run's ends need no words."""
    texts: dict[tuple[datetime, Meaning], list[str]] = {}
    for mark in marks:
        if mark.meaning is not Meaning.RUN and axis.start <= mark.at <= axis.end:
            texts.setdefault((mark.at, mark.meaning), []).append(mark.text)
    return [
        {
            "x": axis.local(at),
            "y": meaning.height,
            "yref": "paper",
            "yanchor": "top",
            "xanchor": "left" if at - axis.start < (axis.end - axis.start) / 2 else "right",
            "showarrow": False,
            "text": "<br>".join(text.replace("<", "&lt;") for text in lines),
            "align": "left",
            "bgcolor": "--panel/0.85",
            "font": {"size": 10, "color": meaning.value},
        }
        for (at, meaning), lines in texts.items()
    ]


def _mark_line(axis: TimeAxis, mark: Mark) -> Figure:
    at = axis.local(mark.at)
    return {
        "type": "line",
        "x0": at,
        "x1": at,
        "y0": 0,
        "y1": 1,
        "yref": "paper",
        "line": {
            "color": mark.meaning.value,
            "width": 1.2,
            "dash": "dot" if mark.meaning is Meaning.RUN else "dash",
        },
    }


def _shade(axis: TimeAxis, gap: Gap) -> Figure:
    return {
        "type": "rect",
        "x0": axis.local(gap.start),
        "x1": axis.local(gap.end),
        "y0": 0,
        "y1": 1,
        "yref": "paper",
        "layer": "below",
        "fillcolor": "--gap" if gap.known is Known.NOTHING else "--gap/0.5",
        "line": {"width": 0},
    }


def _gap_words(axis: TimeAxis, gap: Gap) -> Figure:
    is_empty = gap.known is Known.NOTHING  # where it is not, words at the bottom hide least
    return {
        "x": axis.local(gap.start + (gap.end - gap.start) / 2),
        "y": 0.5 if is_empty else 0,
        "yref": "paper",
        "yanchor": "bottom",
        "showarrow": False,
        "bgcolor": "rgba(0,0,0,0)" if is_empty else "--panel/0.85",
        "text": _GAP_WORDS[gap.known],
        "font": {"size": 10, "color": "--ink-soft"},
    }
