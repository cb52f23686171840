"""Timelines of the batch job of a PanDA job, during that PanDA job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ioportal.core.time_ranges import TimeRange
from ioportal.load.job_series import JobSeries
from ioportal.load.step_charts import KINDS, Timeline

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from ioportal.jobs.models import Job

_MINUTE_S = 60


def timelines(job: Job, start: datetime, end: datetime) -> Iterator[Timeline]:
    """Yield the timelines of a batch job in [start, end) that have observations."""
    window = TimeRange(start, end)
    series = JobSeries(job, window)
    for kind in KINDS:
        if not (timeline := Timeline(kind, series, window)).is_empty:
            yield timeline


def plots(job: Job, start: datetime, end: datetime) -> dict[str, Any]:
    """Return timelines in the form that PanDA's monitor draws: x in minutes since the start."""
    return {
        timeline.chart.name: {
            "data": [["x", *_minutes(timeline, start)], *_lines(timeline)],
            "details": {
                "title": timeline.chart.title,
                "xlabel": "Wall time, min",
                "ylabel": timeline.chart.unit,
            },
        }
        for timeline in timelines(job, start, end)
    }


def series(job: Job, start: datetime, end: datetime) -> list[dict[str, Any]]:
    """Return timelines as rows with times."""
    return [
        {
            "name": timeline.chart.name,
            "title": timeline.chart.title,
            "unit": timeline.chart.unit,
            "rows": [dict(zip(timeline.header, row, strict=True)) for row in timeline.rows()],
        }
        for timeline in timelines(job, start, end)
    ]


def _minutes(timeline: Timeline, start: datetime) -> list[float]:
    """Return the middle of each interval."""
    rows = timeline.steps.frame.select("start", "end").iter_rows()
    return [((a - start) + (b - start)).total_seconds() / 2 / _MINUTE_S for a, b in rows]


def _lines(timeline: Timeline) -> Iterator[list[Any]]:
    for kind, label in zip(timeline.kinds, timeline.labels, strict=True):
        yield [label, *timeline.steps.frame[kind].to_list()]
