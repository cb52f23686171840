"""Common parts of figures over time: the axis, shaded gaps, marks.

A figure is a plain dictionary in the format of Plotly's JavaScript. Its colours are tokens
(`core.charts.palette`, and the page's ``--ink``, ``--line``, ``--gap``, ``--good``, ``--warn``,
``--bad``), with an optional opacity after a slash; the page resolves them. Its times are local to
the axis, or count from an origin.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum
from math import ceil
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ioportal.core.charts.axes import FONT_SIZE, axis_title, plotly_text
from ioportal.core.timelines import Known
from ioportal.core.units import Unit

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from ioportal.core.timelines import Gap

Figure = dict[str, Any]
Place: TypeAlias = str | float  # a local time, or a time since an origin

MEAN = "mean over a gap"
_LABELLED_SHARE = 0.05  # of the range: shorter gaps have no label
_HEIGHT = 270
_THOUSAND = 1_000
_MAX_TICKS = 6
_FEW_DAYS = timedelta(days=7)
_UNIT = timedelta(milliseconds=1)  # of Plotly's distances
_TICK_INTERVALS = [  # longer intervals are whole days
    *(timedelta(milliseconds=n) for n in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    *(timedelta(seconds=n) for n in (1, 2, 5, 10, 15, 30)),
    *(timedelta(minutes=n) for n in (1, 2, 5, 10, 20, 30)),
    *(timedelta(hours=n) for n in (1, 2, 3, 6, 12)),
]
_CALENDAR_TICKS = [  # length, and Plotly's first tick and distance
    *((interval, "2000-01-01", interval / _UNIT) for interval in _TICK_INTERVALS),
    (timedelta(days=1), "2000-01-01", timedelta(days=1) / _UNIT),
    (timedelta(days=7), "2000-01-03", timedelta(days=7) / _UNIT),  # Mondays
    *((timedelta(days=30 * n), "2000-01-01", f"M{n}") for n in (1, 2, 3, 6, 12, 24, 60, 120)),
]
_ELAPSED_TICKS = [
    *_TICK_INTERVALS,
    *(timedelta(days=n) for n in (1, 2, 5, 10, 20, 50, 100)),
]
_ELAPSED_UNITS = (
    (timedelta(days=1), "d"),
    (timedelta(hours=1), "h"),
    (timedelta(minutes=1), "min"),
    (timedelta(seconds=1), "s"),
)
# Larger units for charts: lowest value, factor and name.
_DISPLAY_UNITS = {
    Unit.SECONDS: ((7_200, 3_600, "hours"), (120, 60, "minutes")),
    Unit.MICROSECONDS: ((2_000_000, 1_000_000, "s"), (2_000, 1_000, "ms")),
    Unit.SHARE: ((0, 0.01, "%"),),
}
_SHARE_TICKS = 20  # per cent
_GAP_LABELS = {
    Known.NOTHING: "not observed",
    Known.MEAN: MEAN,
    Known.PART: "partly observed",
    Known.PENDING: "attribution pending",
}
_SHADES = {Known.NOTHING: "--gap", Known.PENDING: "--warn/0.16"}  # others: half the opacity


class Axis(Protocol):
    """The range of a chart, and the places of times on it."""

    @property
    def start(self) -> datetime:
        """Start of the range."""

    @property
    def end(self) -> datetime:
        """End of the range."""

    @property
    def past_end(self) -> datetime:
        """The end of the past part of the range: later data is not missing."""

    def place(self, moment: datetime) -> Place:
        """Return the place of a time on the axis."""

    def length(self, span: timedelta) -> float:
        """Return the length of a time span on the axis."""

    def interval_text(self, start: datetime, end: datetime) -> str:
        """Return an interval as text."""

    def time_text(self, moment: datetime) -> str:
        """Return a time as text, as exact as the axis shows it."""

    @property
    def attributes(self) -> Figure:
        """Type, title and ticks as Plotly's axis attributes."""


class DateAxis(ABC):
    """An axis of local times."""

    start: datetime
    end: datetime

    @property
    def past_end(self) -> datetime:
        """The end of the range."""
        return self.end

    @property
    @abstractmethod
    def clock(self) -> str:
        """The name of its local time."""

    @property
    @abstractmethod
    def ticks(self) -> Figure:
        """Positions of ticks as Plotly's axis attributes."""

    @abstractmethod
    def place(self, moment: datetime) -> str:
        """Return a time in local time, formatted for Plotly."""

    def length(self, span: timedelta) -> float:
        """Return a time span in milliseconds, Plotly's unit of distances."""
        return span / _UNIT

    def interval_text(self, start: datetime, end: datetime) -> str:
        """Return an interval in local time, without its date if it is within a day."""
        texts = [self.place(at).replace("T", " ").removesuffix(".000") for at in (start, end)]
        is_one_day = len({text[:10] for text in texts}) == 1
        return " to ".join(text[11:] if is_one_day else text for text in texts)

    def time_text(self, moment: datetime) -> str:
        """Return the date of a time, on axes of a few days with the time of day."""
        local = datetime.fromisoformat(self.place(moment))
        is_short = self.end - self.start < _FEW_DAYS
        return f"{local:%-d %b %Y %H:%M}" if is_short else f"{local:%-d %b %Y}"

    @property
    def attributes(self) -> Figure:
        """Type, title and ticks as Plotly's axis attributes."""
        return {
            "type": "date",
            "title": {"text": f"Time ({self.clock})", "font": {"size": FONT_SIZE}},
            **self.ticks,
            "hoverformat": "%Y-%m-%d",
        }


@dataclass(frozen=True)
class TimeAxis(DateAxis):
    """An axis with one UTC offset for the whole range.

    In the local time of a zone, an hour repeats or is missing when daylight saving time changes.
    `now` is the end of the past. None: the whole range is past.
    """

    start: datetime
    end: datetime
    offset: timedelta
    now: datetime | None = None

    @property
    def past_end(self) -> datetime:
        """The end of the past part of the range."""
        return min(self.end, self.now or self.end)

    def place(self, moment: datetime) -> str:
        """Return a time in local time, formatted for Plotly."""
        local = moment.astimezone(UTC).replace(tzinfo=None) + self.offset
        return local.isoformat(timespec="milliseconds")

    @property
    def ticks(self) -> Figure:
        """Positions of ticks, equal on all charts; Plotly's defaults depend on the bars."""
        whole_days = timedelta(days=ceil((self.end - self.start) / timedelta(days=_MAX_TICKS)))
        interval = _first_fitting(_TICK_INTERVALS, self.end - self.start) or whole_days
        return {"tick0": self.place(self.start)[:10], "dtick": interval / _UNIT}

    @property
    def clock(self) -> str:
        """The name of its local time."""
        return str(timezone(self.offset))


@dataclass(frozen=True)
class CalendarAxis(DateAxis):
    """An axis in the local time of a zone, for buckets that start at local midnight."""

    start: datetime
    end: datetime
    zone: tzinfo

    def place(self, moment: datetime) -> str:
        """Return a time in local time, formatted for Plotly."""
        local = moment.astimezone(self.zone).replace(tzinfo=None)
        return local.isoformat(timespec="milliseconds")

    @property
    def ticks(self) -> Figure:
        """Positions of ticks, at starts of hours, days, weeks or months."""
        span = self.end - self.start
        fitting = (each for each in _CALENDAR_TICKS if span / each[0] <= _MAX_TICKS)
        _, first, distance = next(fitting, _CALENDAR_TICKS[-1])
        return {"tick0": first, "dtick": distance}

    @property
    def clock(self) -> str:
        """The name of its local time."""
        return str(self.zone)


@dataclass(frozen=True)
class ElapsedAxis:
    """An axis of the time since an origin, such as the start of a run.

    `unit` is the time span of one unit of the axis, `dtick` the distance of its ticks in units.
    """

    start: datetime
    end: datetime
    origin: datetime
    unit: timedelta
    symbol: str
    title: str
    dtick: float

    @classmethod
    def of_run(cls, start: datetime, end: datetime) -> ElapsedAxis:
        """Return an axis of the seconds, minutes, hours or days since the start of a run."""
        interval = _first_fitting(_ELAPSED_TICKS, end - start) or _ELAPSED_TICKS[-1]
        fitting = (unit for unit in _ELAPSED_UNITS if interval >= unit[0])
        unit, symbol = next(fitting, _ELAPSED_UNITS[-1])
        title = f"Time since start ({symbol})"
        return cls(start, end, start, unit, symbol, title, interval / unit)

    @classmethod
    def share_of_run(cls, start: datetime, end: datetime) -> ElapsedAxis:
        """Return an axis in per cent of a run, whose end is after its start."""
        unit = (end - start) / 100
        return cls(start, end, start, unit, "%", "Share of the run (%)", _SHARE_TICKS)

    @property
    def past_end(self) -> datetime:
        """The end of the range."""
        return self.end

    def place(self, moment: datetime) -> float:
        """Return the time since the origin in the unit of the axis."""
        return self.length(moment - self.origin)

    def length(self, span: timedelta) -> float:
        """Return a time span in the unit of the axis."""
        return span / self.unit

    def interval_text(self, start: datetime, end: datetime) -> str:
        """Return an interval since the origin: '12.5 to 13 min'."""
        return f"{self.place(start):.4g} to {self.place(end):.4g} {self.symbol}"

    def time_text(self, moment: datetime) -> str:
        """Return the time since the origin: '12.5 min'."""
        return f"{self.place(moment):.4g} {self.symbol}"

    @property
    def attributes(self) -> Figure:
        """Type, title and ticks as Plotly's axis attributes."""
        return {
            "type": "linear",
            "title": {"text": self.title, "font": {"size": FONT_SIZE}},
            "tick0": 0,
            "dtick": self.dtick,
            "zeroline": False,
            "unifiedhovertitle": {"text": f"%{{x:.4~r}} {self.symbol}"},
        }


def _first_fitting(intervals: Sequence[timedelta], span: timedelta) -> timedelta | None:
    """Return the first interval that gives at most `_MAX_TICKS` ticks in a time span."""
    return next((each for each in intervals if span / each <= _MAX_TICKS), None)


class Meaning(Enum):
    """Reason of a mark; the value is the token of its colour."""

    RUN = "--ink-soft"  # start or end of the job
    BREAK = "--warn"  # changed definition of counters
    FAULT = "--bad"  # possibly wrong figures nearby
    FLAG = "--accent"  # finding of a rule
    MITIGATION = "--good"  # change made at the site


# Their texts are long: the line has a number, and a key below the chart has the text.
_NUMBERED = {Meaning.BREAK: "upgrade", Meaning.MITIGATION: "mitigation"}
_NUMBER = "number"  # name of the label of a numbered mark; the page joins those close together


@dataclass(frozen=True)
class Mark:
    """A vertical line at a time, with a label or a number."""

    at: datetime
    text: str
    meaning: Meaning
    url: str = ""  # of the page about it


def number_format(highest: float, unit: str) -> str:
    """Return d3's format: prefixes (k, M, G) from 1,000, none below, and per cent for shares."""
    if unit == Unit.SHARE:
        return "~%"
    return "~s" if highest >= _THOUSAND else "~g"


def drawn_unit(unit: Unit, highest: float) -> tuple[float, str]:
    """Return factor and name of the unit for a chart of values up to `highest`."""
    larger = (
        (factor, name) for lowest, factor, name in _DISPLAY_UNITS.get(unit, ()) if highest >= lowest
    )
    return next(larger, (1, str(unit)))


def layout(
    axis: Axis, gaps: Sequence[Gap], marks: Sequence[Mark], *, title: str, unit: str, highest: float
) -> Figure:
    """Return the layout of a chart over time: axes, shaded gaps and marks.

    Args:
        axis: the range.
        gaps: intervals to shade.
        marks: times to draw as vertical lines.
        title: title of the chart.
        unit: unit of the values.
        highest: highest drawn value.

    Returns:
        Plotly's layout. ``meta["key"]`` has number, time, kind, text and URL of the numbered marks.
    """
    labelled = sorted(
        (mark for mark in marks if mark.text and _contains(axis, mark)), key=attrgetter("at")
    )
    numbered = [mark for mark in labelled if mark.meaning in _NUMBERED]
    return {
        "meta": {"key": [_key_entry(axis, *each) for each in enumerate(numbered, 1)]},
        "height": _HEIGHT,
        "margin": {"l": 78, "r": 12, "t": 30, "b": 58},
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
            **axis.attributes,
            "range": [axis.place(axis.start), axis.place(axis.end)],
            "gridcolor": "--line",
            "linecolor": "--line-strong",
            "ticks": "outside",
            "tickcolor": "--line-strong",
        },
        "yaxis": {
            "title": axis_title(title, unit),
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
                *(_gap_label(axis, gap) for gap in gaps if _share(axis, gap) > _LABELLED_SHARE),
                *(_number_label(axis, *each) for each in enumerate(numbered, 1)),
                *(_mark_label(axis, mark) for mark in labelled if mark not in numbered),
            ],
            key=itemgetter("x"),
        ),
    }


def _share(axis: Axis, gap: Gap) -> float:
    """Return the length of a gap as a share of the range."""
    return (gap.end - gap.start) / (axis.end - axis.start)


def _contains(axis: Axis, mark: Mark) -> bool:
    return axis.start <= mark.at <= axis.end


def _mark_label(axis: Axis, mark: Mark) -> Figure:
    return text_label(axis.place(mark.at), plotly_text(mark.text), mark.meaning.value)


def _number_label(axis: Axis, number: int, mark: Mark) -> Figure:
    label = text_label(axis.place(mark.at), str(number), mark.meaning.value)
    return {**label, "name": _NUMBER}


def _key_entry(axis: Axis, number: int, mark: Mark) -> Figure:
    return {
        "number": number,
        "at": axis.time_text(mark.at),
        "kind": _NUMBERED[mark.meaning],
        "text": mark.text,
        "url": mark.url,
    }


def _mark_line(axis: Axis, mark: Mark) -> Figure:
    at = axis.place(mark.at)
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
        "x0": axis.place(gap.start),
        "x1": axis.place(gap.end),
        "y0": 0,
        "y1": 1,
        "yref": "paper",
        "layer": "below",
        "fillcolor": _SHADES.get(gap.known, "--gap/0.5"),
        "line": {"width": 0},
    }


def _gap_label(axis: Axis, gap: Gap) -> Figure:
    middle = axis.place(gap.start + (gap.end - gap.start) / 2)
    return text_label(middle, _GAP_LABELS[gap.known], "--ink-soft", "center")


def text_label(x: Place, text: str, token: str, anchor: str = "left") -> Figure:
    """Return a label above the plot; the page places overlapping labels on separate lines."""
    return {
        "x": x,
        "xanchor": anchor,
        "y": 1,
        "yref": "paper",
        "yanchor": "bottom",
        "showarrow": False,
        "text": text,
        "bgcolor": "--panel",  # over the lines of other marks
        "borderpad": 0,
        "font": {"size": FONT_SIZE, "color": token},
    }
