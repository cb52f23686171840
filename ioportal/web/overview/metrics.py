"""The metrics of the overview: operations on metadata targets, RPCs of metadata servers."""

from __future__ import annotations

from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl
from django.conf import settings

from ioportal.core.charts import palette
from ioportal.core.charts.timelines import Chart, Style
from ioportal.core.time_ranges import TimeRange
from ioportal.core.timelines import WINDOW, clipped
from ioportal.ingest import pending_attribution
from ioportal.load import top_consumers
from ioportal.load.series import mean_times, observed, observed_apart, seconds_within
from ioportal.telemetry import buckets, coverage, levels, piecewise, retention
from ioportal.telemetry.models import Coverage
from ioportal.web.overview.charts import LatencyChart
from ioportal.web.overview.query import servers, targets
from ioportal.web.overview.section import OTHERS_VISIBLE, Section

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from ioportal.load.top_consumers import Amount, Bin
    from ioportal.site.models import Target
    from ioportal.telemetry.coverage import Interval
    from ioportal.telemetry.levels import Level
    from ioportal.telemetry.piecewise import Piece

_LATEST = timedelta(minutes=1)
LATENCY = Chart(
    "latency",
    "Service and queue time",
    "µs",
    "Means over the timed RPCs: time in the handler, and wait before it.",
    Style.LINES,
    {"service": "mean service time", "queue": "mean queue time"},
)


class Operations(Section):
    """Metadata operations on each MDT, from its counters."""

    name = "operations"
    title = "Metadata operations"
    unit = "ops/s"
    latest_title = "Over the latest poll interval of each MDT"
    principal_levels = levels.IO_LEVELS
    total_levels = (levels.IO_TOTALS, levels.IO_TEN_MINUTES)
    chart = Chart(
        "operations",
        "Metadata operations",
        "ops/s",
        "Counted by the MDTs between two reads (job_stats). Times of reads are rounded to steps, "
        "so a sum over steps is right within one interval between reads.",
        Style.STACK,
        {},
        palette.principals,
    )

    @cached_property
    def _mdts(self) -> list[Target]:
        return targets()

    @cached_property
    def sources(self) -> dict[int, str]:
        """The MDTs."""
        return {target.pk: target.name for target in self._mdts}

    @cached_property
    def observed(self) -> pl.DataFrame:
        """Intervals between the reads of each MDT."""
        return observed(Coverage.Source.JOB_STATS, self._mdts, self._bins)

    @cached_property
    def pending(self) -> dict[int, list[Interval]]:
        """Intervals of each MDT whose attribution is pending."""
        return pending_attribution.delta_intervals(self.sources, self.window.start, self.window.end)

    def _coarsest(self, choices: Sequence[Level], finest: Level) -> Level:  # noqa: ARG002
        """Return the finest level within retention: poll intervals do not fill coarser bins."""
        available = retention.finest(levels.IO_LEVELS, self.window.start, self.window.end)
        return finest if available is levels.IO_WINDOWS else levels.IO_TEN_MINUTES

    def _rows(self, level: Level) -> top_consumers.Rows:
        """Return intervals that begin in the range, or so shortly before that they reach it."""
        return self._rows_of(*piecewise.pieces(level, self._begin, self._end))

    def _rows_of(self, *pieces: Piece) -> top_consumers.Rows:
        return top_consumers.Rows(pieces, list(self.sources))

    @property
    def _begin(self) -> datetime:
        poll_gap = max((target.poll_gap for target in self._mdts), default=settings.POLL_GAP)
        return buckets.floor(self._bins.start - poll_gap, levels.IO_TEN_MINUTES.width)

    @property
    def _end(self) -> datetime:
        return buckets.ceil(self._bins.end, levels.IO_TEN_MINUTES.width)

    def _amounts(self) -> list[Amount]:
        """Sum coarse rows, and fine rows at the edges and for the latest interval."""
        coarse = levels.IO_TEN_MINUTES
        beyond = self.window.end + timedelta(days=1)  # for MDTs without attributed time
        reached = [self.attributed_until.get(source, beyond) for source in self.sources]
        latest = top_consumers.reaching_from(self._rows(self.total_level), reached) or self._begin
        cut = max(buckets.floor(latest, coarse.width), self._begin)
        begin = min(buckets.ceil(self.window.start, coarse.width), cut)
        rows = self._rows_of(
            *piecewise.pieces(self.level, self._begin, begin),
            *piecewise.pieces(coarse, begin, cut),
            *piecewise.pieces(self.level, cut, self._end),
        )
        return top_consumers.operation_amounts(rows, self.window.start, self.window.end, reached)

    def _latest_rate(self, amount: Amount) -> float:
        return amount.latest

    def _visible_bins(self, source: int) -> list[Bin]:
        """Return the parts of bins within the range, as the rows begin long before it."""
        start, end = self.window.start, self.window.end
        return [
            each.within(start, end)
            for each in super()._visible_bins(source)
            if each.end > start and each.start < end
        ]

    def _windows(self, source: int) -> pl.DataFrame:
        return self._pivoted(source)


class Rpcs(Section):
    """Metadata RPCs handled by each server, from its trace."""

    name = "rpcs"
    title = "Metadata RPCs"
    unit = "RPCs/s"
    latest_title = "Over the latest minute of the traces, or the latest step if that is longer"
    principal_levels = levels.LOAD_LEVELS
    total_levels = levels.RPC_TOTAL_LEVELS
    chart = Chart(
        "rpcs",
        "Metadata RPCs",
        "RPCs/s",
        "Handled by the server, per traced second (rpctrace).",
        Style.STACK,
        {},
        palette.principals,
    )

    @cached_property
    def sources(self) -> dict[int, str]:
        """The metadata servers."""
        return servers()

    @cached_property
    def observed(self) -> pl.DataFrame:
        """Traced intervals of each server."""
        extents = coverage.contiguous(self.sources)
        return observed_apart(Coverage.Source.RPC_TRACE, extents, self._bins)

    @cached_property
    def pending(self) -> dict[int, list[Interval]]:
        """Intervals of each server whose attribution is pending."""
        return pending_attribution.trace_intervals(self.sources, self.window.start, self.window.end)

    def _rows(self, level: Level) -> top_consumers.Rows:
        pieces = piecewise.pieces(level, self._bins.start, self._bins.end)
        return top_consumers.Rows(pieces, list(self.sources))

    @cached_property
    def _latest(self) -> TimeRange:
        """The latest minute of attributed time, in whole bins."""
        end = max(self.attributed_until.values())
        return TimeRange(buckets.floor(end - _LATEST, min(self.bin, self.level.width)), end)

    def _amounts(self) -> list[Amount]:
        """Sum coarse rows, and fine rows for the latest minute."""
        coarser = self.principal_levels[self.principal_levels.index(self.level) :]
        latest = max(self._latest.start, self._bins.start)
        pieces = [
            *piecewise.coarsest_pieces(coarser, self._bins.start, latest),
            *piecewise.pieces(self.level, latest, self._bins.end),
        ]
        rows = top_consumers.Rows(pieces, list(self.sources))
        return top_consumers.rpc_amounts(rows, self._latest.start, self._latest.end)

    @cached_property
    def _latest_s(self) -> float:
        return seconds_within(self.attributed, self._latest.start, self._latest.end)

    def _latest_rate(self, amount: Amount) -> float:
        return amount.latest / self._latest_s if self._latest_s else 0.0

    def _windows(self, source: int) -> pl.DataFrame:
        windows = self._pivoted(source)
        return clipped(windows, self.attributed, (*self.kinds, OTHERS_VISIBLE))

    def latency(self, source: int) -> LatencyChart:
        """Return the mean service and queue time of the timed RPCs."""
        sums = ("timed", "service_us_sum", "total_us_sum")
        rows = [
            (each.source, each.start, each.end, 0.0, each.timed, each.service_us, each.total_us)
            for each in self._visible_bins(source)
        ]
        frame = pl.DataFrame(
            rows, schema={**WINDOW, **dict.fromkeys(sums, pl.Float64)}, orient="row"
        )
        summed = frame.group_by(list(WINDOW), maintain_order=True).agg(pl.col(sums).sum())
        steps = self._steps(source, clipped(summed, self.attributed, sums), sums)
        return LatencyChart(source, LATENCY, mean_times(steps), self.window.axis, self.marks)


SECTIONS: dict[str, type[Section]] = {section.name: section for section in (Operations, Rpcs)}
