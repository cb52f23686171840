"""The time base of an overview section: its levels and bins, observed and attributed time."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from ioportal.core.time_ranges import TimeRange
from ioportal.core.timelines import OBSERVED
from ioportal.load.series import bin_width, seconds_within, without
from ioportal.telemetry import buckets, levels, retention

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioportal.telemetry.coverage import Interval
    from ioportal.telemetry.levels import Level

_BINS = tuple(timedelta(seconds=n) for n in (10, 60, 120, 600, 1_800))
_MAX_BINS = 150
_HOUR = timedelta(hours=1)


class Observation:
    """Servers or targets in a range: the level to read, bins, observed and pending intervals."""

    principal_levels: tuple[Level, ...]  # of the principals' rows, finest first
    total_levels: tuple[Level, ...]  # of the sums over all principals

    def __init__(self, window: TimeRange) -> None:
        self.window = window
        finest, finest_total = (
            retention.finest(choices, window.start, window.end) or choices[-1]
            for choices in (self.principal_levels, self.total_levels)
        )
        min_width = (window.end - window.start) / _MAX_BINS
        self.bin = bin_width(min_width, max(finest.width, finest_total.width), _BINS)
        self.level = self._coarsest(self.principal_levels, finest)
        self.total_level = self._coarsest(self.total_levels, finest_total)
        self._bins = TimeRange(
            buckets.floor(window.start, self.bin), buckets.ceil(window.end, self.bin)
        )

    @property
    def coarser_bin(self) -> timedelta:
        """The bins of the next longer ranges, up to an hour."""
        return next((width for width in (*_BINS, _HOUR) if width > self.bin), self.bin)

    def _coarsest(self, choices: Sequence[Level], finest: Level) -> Level:
        """Return the coarsest level that fills bins; `finest` if retention dropped finer ones."""
        return levels.coarsest(choices, self.bin) if finest is choices[0] else finest

    @cached_property
    def sources(self) -> dict[int, str]:
        """Names of the servers or targets, by key."""
        raise NotImplementedError

    @cached_property
    def observed(self) -> pl.DataFrame:
        """Observed intervals of each source: a frame of `OBSERVED`."""
        raise NotImplementedError

    @cached_property
    def pending(self) -> dict[int, list[Interval]]:
        """Intervals of each source whose attribution is pending."""
        raise NotImplementedError

    @cached_property
    def attributed(self) -> pl.DataFrame:
        """Observed and attributed intervals of each source: a frame of `OBSERVED`."""
        return without(self.observed, self.pending)

    @property
    def is_observed(self) -> bool:
        """Whether any source was observed in the range, attributed or not."""
        return not self.observed.is_empty()

    @property
    def is_attributed(self) -> bool:
        """Whether any interval of the range is attributed."""
        return not self.attributed.is_empty()

    @cached_property
    def attributed_until(self) -> dict[int, datetime]:
        """The end of each source's attributed time within the range."""
        ends = self.attributed.group_by("source").agg(pl.col("end").max()).iter_rows()
        return {source: min(end, self.window.end) for source, end in ends}

    @cached_property
    def observed_s(self) -> float:
        """Seconds of the range in which some source was observed."""
        return self._seconds(self.observed)

    @cached_property
    def attributed_s(self) -> float:
        """Seconds of the range in which some source is attributed: the divisor of rates."""
        return self._seconds(self.attributed)

    @cached_property
    def pending_s(self) -> float:
        """Seconds of the range in which the attribution of some source is pending."""
        spans = [(source, *span) for source, spans in self.pending.items() for span in spans]
        return self._seconds(pl.DataFrame(spans, schema=OBSERVED, orient="row"))

    def _seconds(self, intervals: pl.DataFrame) -> float:
        return seconds_within(intervals, self.window.start, self.window.end)

    @property
    def window_s(self) -> float:
        """Length of the range."""
        return (self.window.end - self.window.start).total_seconds()

    @property
    def bin_s(self) -> float:
        """Length of a bin."""
        return self.bin.total_seconds()

    @cached_property
    def observed_sources(self) -> set[int]:
        """Keys of the sources that were observed in the range."""
        return set(self.observed["source"])

    @property
    def unobserved(self) -> list[str]:
        """Names of the sources that were not observed in the range."""
        return sorted(
            name for source, name in self.sources.items() if source not in self.observed_sources
        )
