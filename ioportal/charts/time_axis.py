"""What figures over time share: the axis, shaded gaps, marked moments.

A figure is a plain dictionary as Plotly's JavaScript takes it. Its colours are tokens
(`charts.palette`, and the page's ``--ink``, ``--line``, ``--gap``, ``--warn``, ``--bad``), with an
opacity behind a slash, that whoever draws it resolves; its times are local to the axis.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, timedelta
from enum import Enum
from math import ceil
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Protocol

from ioportal.analysis.metrics import Unit
from ioportal.analysis.timelines import Known
from ioportal.charts.labels import plotly_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, tzinfo

    from ioportal.analysis.timelines import Gap

Figure = dict[str, Any]

MEAN = "mean over a gap"
_LABELLED_SHARE = 0.05  # of the range: shorter gaps carry no words
_HEIGHT = 244
_THOUSAND = 1_000
_MOST_TICKS = 6
_TICKS = [  # apart from each other; what is longer comes in whole days
    *(timedelta(milliseconds=n) for n in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    *(timedelta(seconds=n) for n in (1, 2, 5, 10, 15, 30)),
    *(timedelta(minutes=n) for n in (1, 2, 5, 10, 20, 30)),
    *(timedelta(hours=n) for n in (1, 2, 3, 6, 12)),
]
_GAP_WORDS = {
    Known.NOTHING: "not observed",
    Known.MEAN: MEAN,
    Known.PART: "not all were read",
    Known.PENDING: "attribution pending",
}
_SHADES = {Known.NOTHING: "--gap", Known.PENDING: "--warn/0.16"}  # any other gap: half a gap's


class Axis(Protocol):
    """The range that is shown and the clock on the wall."""

    @property
    def start(self) -> datetime:
        """Its begin."""

    @property
    def end(self) -> datetime:
        """Its end."""

    def local(self, moment: datetime) -> str:
        """Return a moment as Plotly's axis takes it."""

    @property
    def ticks(self) -> Figure:
        """Where ticks are, as Plotly's axis takes it; empty: where it likes."""


@dataclass(frozen=True)
class TimeAxis:
    """One offset for all of the range.

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


@dataclass(frozen=True)
class CalendarAxis:
    """A zone's own clock: for ranges of days and more, which begin at midnight all year."""

    start: datetime
    end: datetime
    zone: tzinfo

    def local(self, moment: datetime) -> str:
        """Return a moment as Plotly's axis takes it."""
        local = moment.astimezone(self.zone).replace(tzinfo=None)
        return local.isoformat(timespec="milliseconds")

    @property
    def ticks(self) -> Figure:
        """Leave them to Plotly, which knows how long months are."""
        return {}


class Meaning(Enum):
    """Why a moment is marked; the value is the token of its colour."""

    RUN = "--ink-soft"  # the job begins or ends
    BREAK = "--warn"  # what is counted changed
    FAULT = "--bad"  # figures around it may be wrong
    FLAG = "--accent"  # a rule found something


@dataclass(frozen=True)
class Mark:
    """A moment that matters for reading the chart."""

    at: datetime
    text: str
    meaning: Meaning


def number_format(highest: float, unit: str) -> str:
    """Return d3's format: with k, M and G from a thousand on, and never with m for a thousandth.

    Shares are told in per cent.
    """
    if unit == Unit.SHARE:
        return "~%"
    return "~s" if highest >= _THOUSAND else "~g"


def layout(
    axis: Axis, unit: str, highest: float, gaps: Sequence[Gap], marks: Sequence[Mark]
) -> Figure:
    """Lay out a chart over time: its axes, what was not observed, what is marked.

    Args:
        axis: the range.
        unit: of the values.
        highest: value that is drawn.
        gaps: intervals to shade.
        marks: moments to draw as vertical lines.
    """
    return {
        "height": _HEIGHT,
        "margin": {"l": 62, "r": 12, "t": 30, "b": 40},
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
            "title": {"text": unit, "font": {"size": 11}},
            "rangemode": "tozero",
            "fixedrange": True,
            "tickformat": number_format(highest, unit),
            "nticks": 5,
            "gridcolor": "--line",
            "zerolinecolor": "--line-strong",
        },
        "shapes": [
            *(_shade(axis, gap) for gap in gaps),
            *(_mark_line(axis, mark) for mark in marks),
        ],
        "annotations": sorted(
            [
                *(_gap_words(axis, gap) for gap in gaps if _share(axis, gap) > _LABELLED_SHARE),
                *(_mark_words(axis, mark) for mark in marks if mark.text and _holds(axis, mark)),
            ],
            key=itemgetter("x"),
        ),
    }


def _share(axis: Axis, gap: Gap) -> float:
    """Return how much of the range a gap takes."""
    return (gap.end - gap.start) / (axis.end - axis.start)


def _holds(axis: Axis, mark: Mark) -> bool:
    return axis.start <= mark.at <= axis.end


def _mark_words(axis: Axis, mark: Mark) -> Figure:
    return _words(axis.local(mark.at), plotly_text(mark.text), mark.meaning.value)


def _mark_line(axis: Axis, mark: Mark) -> Figure:
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


def _shade(axis: Axis, gap: Gap) -> Figure:
    return {
        "type": "rect",
        "x0": axis.local(gap.start),
        "x1": axis.local(gap.end),
        "y0": 0,
        "y1": 1,
        "yref": "paper",
        "layer": "below",
        "fillcolor": _SHADES.get(gap.known, "--gap/0.5"),
        "line": {"width": 0},
    }


def _gap_words(axis: Axis, gap: Gap) -> Figure:
    middle = axis.local(gap.start + (gap.end - gap.start) / 2)
    return {**_words(middle, _GAP_WORDS[gap.known], "--ink-soft"), "xanchor": "center"}


def _words(x: str, text: str, token: str) -> Figure:
    """Return words above the plot; whoever draws it knows how wide it is, and in which line."""
    return {
        "x": x,
        "xanchor": "left",
        "y": 1,
        "yref": "paper",
        "yanchor": "bottom",
        "showarrow": False,
        "text": text,
        "bgcolor": "--panel",  # over the lines of other marks
        "borderpad": 0,
        "font": {"size": 10, "color": token},
    }
