"""Trends as figures: a bar or a point per calendar bucket, with upgrades and gaps."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import cycle, pairwise
from typing import TYPE_CHECKING

from ioportal.core.charts.axes import log_axis
from ioportal.core.charts.time_axis import CalendarAxis, TimeAxis, layout, number_format
from ioportal.core.charts.timelines import Style
from ioportal.jobs.analysis.trends import Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import polars as pl

    from ioportal.core.charts.time_axis import DateAxis, Figure, Mark
    from ioportal.core.charts.timelines import Chart
    from ioportal.core.timelines import Gap
    from ioportal.jobs.analysis.trends import Buckets

_BAR_SHARE = 0.88  # width of a bar in its bucket
_MILLISECOND = timedelta(milliseconds=1)
# Formats of a time inside a bucket, if different from the format of its start.
_HOVER_FORMATS = {Step.HOUR: "%Y-%m-%d %H:00", Step.WEEK: "week %V of %G"}
_DASHES = ("solid", "5px,3px", "1px,3px")
_SYMBOLS = ("circle", "diamond", "square")


def figure(
    chart: Chart,
    frame: pl.DataFrame,
    buckets: Buckets,
    marks: Sequence[Mark] = (),
    gaps: Sequence[Gap] = (),
    *,
    log: bool = False,
) -> Figure:
    """Draw a value per bucket as lines or as a stack of bars.

    Args:
        chart: content and style.
        frame: a row per bucket; a column for each of the chart's labels, in its unit, null if
            unknown; optionally ``n``, the number of jobs behind a value.
        buckets: bounds of the rows.
        marks: times to draw as vertical lines.
        gaps: intervals to shade.
        log: whether the value axis is logarithmic, which omits zeros.

    Returns:
        ``{"data": [...], "layout": {...}}``.
    """
    kinds = _drawn_kinds(chart, frame)
    highest = highest_of(frame, kinds)
    axis = axis_of(buckets)
    base = layout(axis, gaps, marks, title=chart.title, unit=chart.unit, highest=highest)
    base["xaxis"]["hoverformat"] = _HOVER_FORMATS.get(buckets.step, buckets.step.form)
    if log:
        base["yaxis"] |= {"rangemode": "normal", **_log_axis(frame, kinds)}
    draw = _lines if chart.style is Style.LINES else _bars
    return {
        "data": draw(
            chart,
            kinds,
            frame,
            _spans(axis, buckets),
            f",.4~{number_format(highest, chart.unit)[-1]}",
        ),
        "layout": {**base, "barmode": "stack"},
    }


def _spans(axis: DateAxis, buckets: Buckets) -> list[tuple[datetime, timedelta]]:
    """Return start and length of each bucket on the axis.

    On a calendar axis, all days have 24 hours.
    """
    edges = [datetime.fromisoformat(axis.place(edge)) for edge in buckets.edges]
    return [(start, end - start) for start, end in pairwise(edges)]


def highest_of(frame: pl.DataFrame, kinds: Iterable[str]) -> float:
    """Return the highest value of some columns, 0 without known values."""
    return max((float(max(frame[kind].drop_nulls(), default=0)) for kind in kinds), default=0.0)


def _log_axis(frame: pl.DataFrame, kinds: Iterable[str]) -> Figure:
    values = [value for kind in kinds for value in frame[kind].drop_nulls() if value > 0]
    return log_axis(min(values), max(values)) if values else {"type": "log"}


def axis_of(buckets: Buckets) -> DateAxis:
    """Return the axis of buckets: the zone's calendar, or one UTC offset for hours."""
    if buckets.step is Step.HOUR:
        offset = buckets.start.astimezone(buckets.zone).utcoffset()
        if offset is not None:
            return TimeAxis(buckets.start, buckets.end, offset)
    return CalendarAxis(buckets.start, buckets.end, buckets.zone)


def _drawn_kinds(chart: Chart, frame: pl.DataFrame) -> list[str]:
    """Return nonzero kinds of a stack, or all kinds of lines, whose colours are then stable."""
    if chart.style is Style.LINES:
        return list(chart.labels)
    return [kind for kind in chart.labels if frame[kind].sum()]


def _lines(
    chart: Chart,
    kinds: Sequence[str],
    frame: pl.DataFrame,
    spans: Sequence[tuple[datetime, timedelta]],
    number: str,
) -> list[Figure]:
    tokens = chart.colours(list(kinds))
    job_counts = {"customdata": frame["n"].to_list()} if "n" in frame.columns else {}
    count = " of %{customdata} jobs" if job_counts else ""
    return [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": chart.labels[kind],
            "x": [_local(start + length / 2) for start, length in spans],
            "y": frame[kind].to_list(),
            **job_counts,
            "line": {"color": tokens[kind], "width": 1.6, "dash": dash},
            "marker": {"size": 4.5, "symbol": symbol},
            "connectgaps": False,
            "hovertemplate": f"%{{y:{number}}} {chart.unit}{count}",
        }
        for kind, dash, symbol in zip(kinds, cycle(_DASHES), cycle(_SYMBOLS), strict=False)
    ]


def _bars(
    chart: Chart,
    kinds: Sequence[str],
    frame: pl.DataFrame,
    spans: Sequence[tuple[datetime, timedelta]],
    number: str,
) -> list[Figure]:
    tokens = chart.colours(list(kinds))
    return [
        {
            "type": "bar",
            "name": chart.labels[kind],
            "x": [_local(start) for start, _ in spans],
            "offset": [(1 - _BAR_SHARE) / 2 * length / _MILLISECOND for _, length in spans],
            "width": [_BAR_SHARE * length / _MILLISECOND for _, length in spans],
            "y": frame[kind].to_list(),
            # The outline keeps a bucket visible that the range cuts to almost nothing.
            "marker": {"color": tokens[kind], "line": {"color": tokens[kind], "width": 1}},
            "hovertemplate": f"%{{y:{number}}} {chart.unit}",
        }
        for kind in kinds
    ]


def _local(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")
