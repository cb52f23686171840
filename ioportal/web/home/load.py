"""Load of the metadata servers in a range, by user and process."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl
from django.utils import timezone

from ioportal.core.charts import palette
from ioportal.core.charts import timelines as charts
from ioportal.core.charts.axes import kind_of
from ioportal.core.charts.timelines import Chart, Style
from ioportal.core.formatting import step_of
from ioportal.core.timelines import OBSERVED, Steps, in_fewer_steps, rates, within
from ioportal.ingest import pending_attribution
from ioportal.load import operations
from ioportal.load.operations import target_load
from ioportal.load.series import bin_width, exported, observed, seconds, seconds_within, without
from ioportal.site import process_names
from ioportal.telemetry.models import Coverage, Principal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime
    from typing import Any

    from ioportal.core.charts.time_axis import Figure
    from ioportal.core.time_ranges import TimeRange
    from ioportal.load.operations import Host
    from ioportal.site.models import Target
    from ioportal.telemetry.coverage import Interval

EXPORT_COLUMNS = ("kind", "name", "metadata_operations", "share", "per_second")
_CHART_LAYERS = 6  # the rest is one layer
_TABLE_ROWS = 10
_BINS = 360  # at most: a storm of minutes is visible in six hours
_SHORTEST_BIN = timedelta(minutes=1)  # as the polls of an agent
_NO_STEPS = {**OBSERVED, "observed": pl.Int64()}
_COLUMNS = {
    **OBSERVED,
    "kind": pl.Int16(),
    "name": pl.String(),
    "operations": pl.Float64(),
}


@dataclass(frozen=True)
class PrincipalLoad:
    """Metadata operations of one principal in the range."""

    kind: Principal
    name: str  # of the user or the process; "": all principals of the kind
    operations: float
    share: float
    user: str = ""  # the registered user of a process

    @property
    def label(self) -> str:
        """Its name on pages: a user's name alone, anything else with its kind."""
        if self.kind is Principal.JOB:
            return kind_of(self.name) or "jobs without a user"
        if self.kind is not Principal.PROCESS:
            return self.kind.label
        return f"process {self.name}" + (" (user not proven)" if self.user else "")

    @property
    def is_user(self) -> bool:
        """Whether it has a user page."""
        return self.kind is Principal.JOB and bool(self.name)


class MetadataLoad:
    """Load of the metadata targets in a range."""

    script_id = "figure-load"

    def __init__(
        self,
        mdts: Sequence[Target],
        observed_until: Mapping[int, datetime],
        window: TimeRange | None,
    ) -> None:
        """Describe the load.

        Args:
            mdts: the metadata targets.
            observed_until: end of each target's latest observed interval; unobserved targets are
                missing.
            window: the range; None: nothing was observed.
        """
        self._mdts = mdts
        self._observed_until = observed_until
        self.window = window if observed_until else None

    @property
    def until(self) -> datetime:
        """The end of the latest data."""
        return max(self._observed_until.values())

    @property
    def is_old(self) -> bool:
        """Whether newer data is overdue."""
        if self.window is None:
            return False
        return timezone.now() - self.until > self._poll_gap

    @property
    def _poll_gap(self) -> timedelta:
        """The longest poll interval without a gap."""
        return max(target.poll_gap for target in self._mdts)

    @cached_property
    def _step(self) -> timedelta:
        """The width of the bins, a multiple of a minute."""
        length = self.window.end - self.window.start if self.window else timedelta()
        return bin_width(length / _BINS, _SHORTEST_BIN)

    @property
    def chart(self) -> Chart:
        """The content of the chart."""
        return Chart(
            "load",
            "Metadata operations by user",
            "ops/s",
            f"{step_of(self._step)} means, or means of longer poll intervals. Counted by the MDTs "
            "(job_stats): users' jobs, processes outside jobs, and job ids without accounting.",
            Style.STACK,
            {},
            palette.principals,
        )

    @cached_property
    def _rows(self) -> pl.DataFrame:
        if self.window is None:
            return pl.DataFrame(schema=_COLUMNS)
        start, end = self.window.start, self.window.end
        rows = target_load(
            self._observed_until.keys(), start, end, self._step, longest=self._poll_gap
        )
        return pl.DataFrame(rows, schema=_COLUMNS, orient="row")

    @cached_property
    def _pending(self) -> dict[int, list[Interval]]:
        if self.window is None:
            return {}
        return pending_attribution.delta_intervals(
            self._observed_until, self.window.start, self.window.end
        )

    @cached_property
    def _attributed(self) -> pl.DataFrame:
        if self.window is None:
            return pl.DataFrame(schema=OBSERVED)
        return without(observed(Coverage.Source.JOB_STATS, self._mdts, self.window), self._pending)

    @property
    def attributed_s(self) -> float:
        """Seconds in which some target is attributed: the divisor of rates."""
        return self._seconds(self._attributed)

    @property
    def pending_s(self) -> float:
        """Seconds in which the attribution of some target is pending."""
        spans = [(target, *span) for target, spans in self._pending.items() for span in spans]
        return self._seconds(pl.DataFrame(spans, schema=OBSERVED, orient="row"))

    def _seconds(self, intervals: pl.DataFrame) -> float:
        window = self.window
        return seconds_within(intervals, window.start, window.end) if window else 0.0

    @cached_property
    def principals(self) -> list[PrincipalLoad]:
        """All active principals, busiest first."""
        sums = self._rows.group_by("kind", "name").agg(pl.col("operations").sum())
        total = sums["operations"].sum()
        processes = sums.filter(kind=Principal.PROCESS.value)["name"]
        users = process_names.users(processes)
        return [
            PrincipalLoad(
                Principal(kind),
                name,
                operations,
                operations / total,
                users.get(name, "") if kind == Principal.PROCESS else "",
            )
            for kind, name, operations in sums.sort("operations", descending=True).iter_rows()
            if operations
        ]

    @property
    def table(self) -> list[tuple[PrincipalLoad, str]]:
        """The busiest principals, each with its colour in the chart."""
        colours = palette.principals(list(self.steps.kinds))
        return [
            (principal, colours.get(principal.label, palette.REST))
            for principal in self.principals[:_TABLE_ROWS]
        ]

    @cached_property
    def hosts(self) -> list[Host]:
        """The busiest hosts outside jobs, from export statistics."""
        if self.window is None:
            return []
        return operations.top_hosts(self._observed_until.keys(), self.window.start, self.window.end)

    @property
    def exported(self) -> str:
        """How much of the range these statistics cover."""
        return exported(self._observed_until, self.window) if self.window else ""

    @property
    def more(self) -> int:
        """Number of principals beyond the table."""
        return max(0, len(self.principals) - _TABLE_ROWS)

    @cached_property
    def steps(self) -> Steps:
        """Rates of the busiest principals, and of all others together."""
        layers = self.principals[:_CHART_LAYERS]
        rest = [palette.ALL_OTHERS] if len(self.principals) > _CHART_LAYERS else []
        kinds = (*(principal.label for principal in layers), *rest)
        if self.window is None or not layers:
            return Steps(pl.DataFrame(schema=_NO_STEPS), (), len(self._observed_until))
        labels = pl.DataFrame(
            [(principal.kind, principal.name, principal.label) for principal in layers],
            schema={"kind": pl.Int16, "name": pl.String, "label": pl.String},
            orient="row",
        )
        windows = (
            self._rows.join(labels, on=["kind", "name"], how="left")
            .with_columns(pl.col("label").fill_null(palette.ALL_OTHERS))
            .pivot(
                "label",
                index=["source", "start", "end"],
                values="operations",
                aggregate_function="sum",
            )
            .with_columns(seconds("start", "end").alias("seconds"))
        )
        steps = rates(windows, self._attributed, kinds, len(self._observed_until))
        spans = sorted(span for spans in self._pending.values() for span in spans)
        steps = replace(steps, pending=tuple(spans))
        return in_fewer_steps(within(steps, self.window.start, self.window.end), _BINS)

    @property
    def is_empty(self) -> bool:
        """Whether no principal was active."""
        return not self.principals

    @property
    def figure(self) -> Figure | None:
        """The chart for Plotly; None: no range."""
        return charts.figure(self.chart, self.steps, self.window.axis) if self.window else None

    @property
    def about(self) -> dict[str, object]:
        """The JSON export's members next to its rows."""
        if self.window is None:
            return {}
        return {
            "start": self.window.start,
            "end": self.window.end,
            "attributed_s": self.attributed_s,
            "pending_s": self.pending_s,
        }

    def export_rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield a row of `EXPORT_COLUMNS` for each principal."""
        seconds = self.attributed_s
        for principal in self.principals:
            rate = principal.operations / seconds if seconds else None
            yield (
                principal.kind.label, principal.name, principal.operations, principal.share, rate,
            )  # fmt: skip
