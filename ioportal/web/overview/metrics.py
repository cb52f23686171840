"""The metrics of the overview: operations on metadata targets, RPCs of metadata servers."""

from __future__ import annotations

from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl
from django.conf import settings

from ioportal.activity import top_consumers
from ioportal.analysis.timelines import WINDOW, Steps, clipped
from ioportal.charts import palette
from ioportal.charts.timelines import Chart, Style
from ioportal.ingest import pending_attribution
from ioportal.reporting.ranges import TimeRange
from ioportal.reporting.series import mean_times, observed, observed_apart, seconds_within
from ioportal.telemetry import coverage, levels, retention, rollups
from ioportal.telemetry.models import Coverage
from ioportal.web.overview.query import servers, targets
from ioportal.web.overview.section import TOLD, Section, Times

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from ioportal.activity.top_consumers import Amount
    from ioportal.site.models import Target
    from ioportal.telemetry.coverage import Interval
    from ioportal.telemetry.levels import Level
    from ioportal.telemetry.rollups import Piece
_NEWEST = timedelta(minutes=1)
LATENCY = Chart(
    "latency",
    "Service and queue time",
    "µs",
    "Means over the timed RPCs: in the handler, and waiting for it.",
    Style.LINES,
    {"service": "mean service time", "queue": "mean queue time"},
)


class Operations(Section):
    """Metadata operations on each MDT, as its counters tell."""

    name = "operations"
    title = "Metadata operations"
    unit = "ops/s"
    newest_words = "Over the newest poll interval of each MDT"
    of = levels.IO_LEVELS
    of_all = (levels.IO_TOTALS, levels.IO_TEN_MINUTES)
    chart = Chart(
        "operations",
        "Metadata operations",
        "ops/s",
        "Counted by the MDTs between two reads (job_stats).",
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

    def _seen(self) -> pl.DataFrame:
        """Return when each was read."""
        return observed(Coverage.Source.JOB_STATS, self._mdts, self._bins)

    def _pending(self) -> dict[int, list[Interval]]:
        return pending_attribution.delta_intervals(self.sources, self.window.start, self.window.end)

    def _coarsest(self, of: Sequence[Level], kept: Level) -> Level:  # noqa: ARG002
        """Return what is left: sums of polls have other bounds, and totals are of polls."""
        is_whole = retention.finest(levels.IO_LEVELS, self.window.start, self.window.end)
        return kept if is_whole is levels.IO_WINDOWS else levels.IO_TEN_MINUTES

    def _rows(self, level: Level) -> top_consumers.Rows:
        """Intervals that begin in the range or shortly before: these reach into it."""
        return self._of(*rollups.pieces(level, self._begin, self._end))

    def _of(self, *pieces: Piece) -> top_consumers.Rows:
        return top_consumers.Rows(pieces, list(self.sources))

    @property
    def _begin(self) -> datetime:
        apart = max((target.poll_gap for target in self._mdts), default=settings.POLL_GAP)
        return rollups.floor(self._bins.start - apart, levels.IO_TEN_MINUTES.width)

    @property
    def _end(self) -> datetime:
        return rollups.ceil(self._bins.end, levels.IO_TEN_MINUTES.width)

    def _amounts(self) -> list[Amount]:
        """Sums need no steps: coarser rows tell them, but for the edges and the newest time."""
        coarse = levels.IO_TEN_MINUTES
        ahead = self.window.end + timedelta(days=1)  # of what was never read
        reached = [self.reached.get(source, ahead) for source in self.sources]
        newest = top_consumers.reaching_from(self._rows(self.level_of_all), reached) or self._begin
        cut = max(rollups.floor(newest, coarse.width), self._begin)
        begin = min(rollups.ceil(self.window.start, coarse.width), cut)
        rows = self._of(
            *rollups.pieces(self.level, self._begin, begin),
            *rollups.pieces(coarse, begin, cut),
            *rollups.pieces(self.level, cut, self._end),
        )
        return top_consumers.operation_amounts(rows, self.window.start, self.window.end, reached)

    def _newest_rate(self, amount: Amount) -> float:
        return amount.newest

    def _windows(self, source: int) -> pl.DataFrame:
        return self._pivoted(source)


class Rpcs(Section):
    """Metadata RPCs handled by each server, as its trace tells."""

    name = "rpcs"
    title = "Metadata RPCs"
    unit = "RPCs/s"
    newest_words = "Over the newest minute of the traces; where steps are longer, the last one"
    of = levels.LOAD_LEVELS
    of_all = levels.RPC_TOTAL_LEVELS
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

    def _seen(self) -> pl.DataFrame:
        """Return when each was traced."""
        apart = coverage.contiguous(self.sources)
        return observed_apart(Coverage.Source.RPC_TRACE, apart, self._bins)

    def _pending(self) -> dict[int, list[Interval]]:
        return pending_attribution.trace_intervals(self.sources, self.window.start, self.window.end)

    def _rows(self, level: Level) -> top_consumers.Rows:
        pieces = rollups.pieces(level, self._bins.start, self._bins.end)
        return top_consumers.Rows(pieces, list(self.sources))

    @cached_property
    def _newest(self) -> TimeRange:
        """The newest time of which something is known, in whole bins."""
        end = max(self.reached.values())
        return TimeRange(rollups.floor(end - _NEWEST, min(self.bin, self.level.width)), end)

    def _amounts(self) -> list[Amount]:
        """Sums need no steps: coarser rows tell them, but for the newest time."""
        coarser = self.of[self.of.index(self.level) :]
        newest = max(self._newest.start, self._bins.start)
        pieces = [
            *rollups.coarsest_pieces(coarser, self._bins.start, newest),
            *rollups.pieces(self.level, newest, self._bins.end),
        ]
        rows = top_consumers.Rows(pieces, list(self.sources))
        return top_consumers.rpc_amounts(rows, self._newest.start, self._newest.end)

    @cached_property
    def _newest_s(self) -> float:
        return seconds_within(self.attributed, self._newest.start, self._newest.end)

    def _newest_rate(self, amount: Amount) -> float:
        return amount.newest / self._newest_s if self._newest_s else 0.0

    def _windows(self, source: int) -> pl.DataFrame:
        windows = self._pivoted(source)
        return clipped(windows, self.attributed, (*self.kinds, TOLD))

    def times(self, source: int) -> Times:
        """Return the mean service and queue time of the timed RPCs."""
        return Times(self, source, LATENCY, self._latency(source))

    def _latency(self, source: int) -> Steps:
        sums = ("timed", "service_us_sum", "total_us_sum")
        rows = [
            (one.source, one.start, one.end, 0.0, one.timed, one.service_us, one.total_us)
            for one in self._told(source)
        ]
        frame = pl.DataFrame(
            rows, schema={**WINDOW, **dict.fromkeys(sums, pl.Float64)}, orient="row"
        )
        summed = frame.group_by(list(WINDOW), maintain_order=True).agg(pl.col(sums).sum())
        return mean_times(self._steps(source, clipped(summed, self.attributed, sums), sums))


SECTIONS: dict[str, type[Section]] = {section.name: section for section in (Operations, Rpcs)}
