"""Who loads the metadata servers in the newest hours of data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING

import polars as pl
from django.utils import timezone

from ioportal.activity import target_load
from ioportal.analysis.timelines import OBSERVED, Steps, coarsened, rates, within
from ioportal.charts import palette
from ioportal.charts import timelines as charts
from ioportal.charts.timelines import Chart, Style
from ioportal.ingest import pending_attribution
from ioportal.reporting.ranges import TimeRange
from ioportal.reporting.series import last_observed, observed, seconds, seconds_within, without
from ioportal.site.models import Target
from ioportal.telemetry.models import Coverage, Principal

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from ioportal.charts.time_axis import Figure
    from ioportal.telemetry.coverage import Interval

HOURS = (1, 6, 24)
DEFAULT_HOURS = 6
_NAMED = 6  # in the chart; the rest is one layer
_LISTED = 10
_BINS = 36
_STEPS_SHOWN = 200
_HEIGHT = 380  # of the chart: that of the table beside it
_NO_STEPS = {**OBSERVED, "observed": pl.Int64()}
_COLUMNS = {
    **OBSERVED,
    "kind": pl.Int16(),
    "name": pl.String(),
    "operations": pl.Float64(),
}


@dataclass(frozen=True)
class Load:
    """What one principal did in the range."""

    kind: Principal
    name: str  # of the user or the process; "": whatever is of that kind
    operations: float
    share: float

    @property
    def words(self) -> str:
        """Who it is."""
        return words_of(self.kind, self.name)

    @property
    def is_user(self) -> bool:
        """Whether it has a page."""
        return self.kind is Principal.JOB and bool(self.name)


def words_of(kind: Principal, name: str) -> str:
    """Return what a principal is called on pages: a user by the name alone."""
    if kind is Principal.JOB:
        return name or "jobs of nobody"
    return f"process {name}" if kind is Principal.PROCESS else kind.label


class NewestLoad:
    """The newest hours in which metadata targets were read, and who was busy then."""

    def __init__(self, mdts: Iterable[Target], asked_hours: str) -> None:
        self._mdts = list(mdts)
        hours = {str(hours): hours for hours in HOURS}
        self.hours = hours.get(asked_hours, DEFAULT_HOURS)

    @classmethod
    def now(cls, asked_hours: str) -> NewestLoad:
        """Return it for all metadata targets."""
        return cls(Target.objects.filter(kind=Target.Kind.MDT), asked_hours)

    @cached_property
    def lasts(self) -> dict[int, datetime]:
        """When each of those that ever were was observed last."""
        return last_observed(Coverage.Source.JOB_STATS, self._mdts)

    @cached_property
    def window(self) -> TimeRange | None:
        """The range; None: no counter of a metadata target was ever read twice."""
        if not self.lasts:
            return None
        end = max(self.lasts.values())
        return TimeRange(end - timedelta(hours=self.hours), end)

    @property
    def is_old(self) -> bool:
        """Whether newer reads should have come by now."""
        if self.window is None:
            return False
        apart = max(target.poll_gap for target in self._mdts)
        return timezone.now() - self.window.end > apart

    @cached_property
    def _rows(self) -> pl.DataFrame:
        if self.window is None:
            return pl.DataFrame(schema=_COLUMNS)
        # Whole seconds, so that bins of polls every minute are whole polls.
        width = timedelta(seconds=ceil(self.hours * 3600 / _BINS))
        rows = target_load.of_targets(self.lasts.keys(), self.window.start, self.window.end, width)
        return pl.DataFrame(rows, schema=_COLUMNS, orient="row")

    @cached_property
    def _pending(self) -> dict[int, list[Interval]]:
        if self.window is None:
            return {}
        return pending_attribution.delta_intervals(self.lasts, self.window.start, self.window.end)

    @cached_property
    def _attributed(self) -> pl.DataFrame:
        if self.window is None:
            return pl.DataFrame(schema=OBSERVED)
        return without(observed(Coverage.Source.JOB_STATS, self._mdts, self.window), self._pending)

    @property
    def attributed_s(self) -> float:
        """Seconds in which some target is attributed: what rates divide by."""
        return self._seconds(self._attributed)

    @property
    def pending_s(self) -> float:
        """Seconds in which some target is not attributed yet."""
        spans = [(target, *span) for target, spans in self._pending.items() for span in spans]
        return self._seconds(pl.DataFrame(spans, schema=OBSERVED, orient="row"))

    def _seconds(self, intervals: pl.DataFrame) -> float:
        window = self.window
        return seconds_within(intervals, window.start, window.end) if window else 0.0

    @cached_property
    def principals(self) -> list[Load]:
        """Everybody who did something, busiest first."""
        sums = self._rows.group_by("kind", "name").agg(pl.col("operations").sum())
        total = sums["operations"].sum()
        return [
            Load(Principal(kind), name, operations, operations / total)
            for kind, name, operations in sums.sort("operations", descending=True).iter_rows()
            if operations
        ]

    @property
    def busiest(self) -> list[tuple[Load, str]]:
        """The first of them, each with its colour in the chart."""
        colours = palette.principals(list(self.steps.kinds))
        return [(one, colours.get(one.words, palette.REST)) for one in self.principals[:_LISTED]]

    @property
    def more(self) -> int:
        """How many others there are."""
        return max(0, len(self.principals) - _LISTED)

    @cached_property
    def steps(self) -> Steps:
        """Rates of the busiest, and of all others together."""
        named = self.principals[:_NAMED]
        others = [palette.ALL_OTHERS] if len(self.principals) > _NAMED else []
        kinds = (*(principal.words for principal in named), *others)
        if self.window is None or not named:
            return Steps(pl.DataFrame(schema=_NO_STEPS), (), len(self.lasts))
        words = pl.DataFrame(
            [(principal.kind, principal.name, principal.words) for principal in named],
            schema={"kind": pl.Int16, "name": pl.String, "who": pl.String},
            orient="row",
        )
        windows = (
            self._rows.join(words, on=["kind", "name"], how="left")
            .with_columns(pl.col("who").fill_null(palette.ALL_OTHERS))
            .pivot(
                "who",
                index=["source", "start", "end"],
                values="operations",
                aggregate_function="sum",
            )
            .with_columns(seconds("start", "end").alias("seconds"))
        )
        steps = rates(windows, self._attributed, kinds, len(self.lasts))
        spans = sorted(span for spans in self._pending.values() for span in spans)
        steps = replace(steps, pending=tuple(spans))
        return coarsened(within(steps, self.window.start, self.window.end), _STEPS_SHOWN)

    @property
    def figure(self) -> Figure | None:
        """The chart for Plotly; None: nobody did anything."""
        if self.window is None or not self.principals:
            return None
        figure = charts.figure(CHART, self.steps, self.window.axis)
        figure["layout"]["height"] = _HEIGHT
        return figure


CHART = Chart(
    "load",
    "Metadata operations by user",
    "ops/s",
    "Counted by the MDTs (job_stats), stacked: users' jobs, processes outside of jobs, and ids "
    "that no accounting has named.",
    Style.STACK,
    {},
    palette.principals,
)
