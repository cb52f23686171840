"""What each source was observed in a range: the coverage page's rows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from itertools import chain, groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from ioportal.charts.coverage import strip
from ioportal.reporting.ranges import TimeRange
from ioportal.site.models import Server, Target
from ioportal.telemetry import coverage
from ioportal.telemetry.coverage import Interval
from ioportal.telemetry.models import Coverage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime


_DEFAULT_RANGE = timedelta(days=3)


@dataclass(frozen=True)
class SourceCoverage:
    """One source and when it was observed within a range."""

    source: Coverage.Source
    name: str
    filesystem: str
    simulated: bool
    observed: list[Interval]
    window: TimeRange

    @property
    def bars(self) -> list[tuple[float, float]]:
        """The strip that shows it."""
        return strip(self.observed, self.window.start, self.window.end)

    @property
    def share(self) -> float:
        """How much of the range was observed."""
        return (
            coverage.seconds(self.observed) / (self.window.end - self.window.start).total_seconds()
        )

    @cached_property
    def gaps(self) -> list[Interval]:
        """Gaps of `coverage.SHORTEST_GAP` or longer, including the ends of the range."""
        found = coverage.gaps(self.observed, self.window.start, self.window.end)
        return [gap for gap in found if gap.end - gap.start >= coverage.SHORTEST_GAP]

    @property
    def longest_gap(self) -> Interval | None:
        """The longest of these."""
        return max(self.gaps, key=lambda gap: gap.seconds, default=None)

    @property
    def last(self) -> datetime | None:
        """When it was observed last."""
        return self.observed[-1].end if self.observed else None


def default_range() -> TimeRange | None:
    """Return the last days that anything was observed in; None where nothing ever was.

    A single read observes nothing: one of a file with a wrong time must not hide the rest.
    """
    lasts = (coverage.last_observed(source, apart).values() for source, _, apart in _sources())
    last = max(chain.from_iterable(lasts), default=None)
    if last is None:
        return None
    end = last.replace(microsecond=0) + timedelta(seconds=1)
    return TimeRange(end - _DEFAULT_RANGE, end)


def rows(window: TimeRange) -> Iterator[SourceCoverage]:
    """Yield every source that was observed in a range, by kind and name."""
    for source, things, apart in _sources():
        found = coverage.by_source(source, apart, window.start, window.end)
        by_id = {
            pk: [_within(interval, window) for _, interval in group]
            for pk, group in groupby(found, key=itemgetter(0))
        }
        for thing in things:
            if thing.pk in by_id:
                filesystem = thing.filesystem
                yield SourceCoverage(
                    source,
                    thing.name,
                    filesystem.name,
                    filesystem.simulated,
                    by_id[thing.pk],
                    window,
                )


def _sources() -> Iterator[tuple[Coverage.Source, Sequence[Server | Target], dict[int, timedelta]]]:
    """Yield what is observed of what, by name, and how far apart that may be without a gap."""
    servers = list(Server.objects.select_related("filesystem").order_by("name"))
    targets = list(Target.objects.select_related("filesystem").order_by("name"))
    server_ids = [server.pk for server in servers]
    yield Coverage.Source.RPC_TRACE, servers, coverage.contiguous(server_ids)
    yield Coverage.Source.REQ_HISTORY, servers, coverage.contiguous(server_ids)
    yield Coverage.Source.MDS_STATS, servers, coverage.polled(server_ids)
    apart = {target.pk: target.poll_gap for target in targets}
    yield Coverage.Source.JOB_STATS, targets, apart
    yield Coverage.Source.MD_STATS, targets, apart


def _within(interval: Interval, window: TimeRange) -> Interval:
    return Interval(max(interval.start, window.start), min(interval.end, window.end))
