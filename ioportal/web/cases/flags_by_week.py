"""The flags of a case by week."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from typing import TYPE_CHECKING

import polars as pl
from django.db.models import Count
from django.db.models.functions import TruncWeek
from django.urls import reverse
from django.utils import timezone

from ioportal.core.charts.timelines import Chart, Style
from ioportal.jobs.analysis import trends
from ioportal.jobs.analysis.trends import Step
from ioportal.jobs.charts import trends as charts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ioportal.core.charts.time_axis import Figure
    from ioportal.findings.models import Case, FlagQuerySet

_CHART = Chart(
    "flags",
    "Flags by week",
    "flags",
    "Flags on good data, by the calendar week of their latest data.",
    Style.STACK,
    {"flags": "flags"},
)
_WEEK = timedelta(days=7)


class FlagsByWeek:
    """The number of flags in each calendar week from the first to the last flag."""

    script_id = "figure-flags-by-week"
    chart = _CHART
    columns = ("from", "below", "flags")
    is_empty = False

    def __init__(self, case: Case, counts: Mapping[datetime, int]) -> None:
        """Show `counts`, the flags by start of week."""
        zone = timezone.get_current_timezone()
        last = timezone.localtime(max(counts)).date()
        end = datetime.combine(last + _WEEK, time(), zone)
        self._buckets = trends.buckets(min(counts), end, Step.WEEK, zone)
        self._flags = [counts.get(start, 0) for start, _ in self._buckets.bounds]
        self.exports_url = reverse("case_weeks", args=[case.pk])

    @classmethod
    def of(cls, case: Case, flags: FlagQuerySet) -> FlagsByWeek | None:
        """Return the chart of a case's flags; None: there are none."""
        by_week = flags.order_by().values_list(TruncWeek("until")).annotate(flags=Count("pk"))
        counts = dict(by_week)
        return cls(case, counts) if counts else None

    @property
    def is_of_several_weeks(self) -> bool:
        """Whether there is more than one bar to draw."""
        return len(self._flags) > 1

    @property
    def figure(self) -> Figure:
        """The chart for Plotly."""
        return charts.figure(_CHART, pl.DataFrame({"flags": self._flags}), self._buckets)

    @property
    def rows(self) -> Iterator[tuple[datetime, datetime, int]]:
        """Yield start, end and number of flags of each week."""
        for (start, end), count in zip(self._buckets.bounds, self._flags, strict=True):
            yield timezone.localtime(start), timezone.localtime(end), count
