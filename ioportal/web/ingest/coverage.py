"""The coverage page: observed intervals by source, and operations outside job_stats."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from itertools import chain, groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from django.shortcuts import render
from django.urls import reverse
from django.utils.html import format_html
from django.views.decorators.http import require_safe

from ioportal.core.formatting import percent
from ioportal.core.time_fields import local_text
from ioportal.core.time_ranges import TimeRange
from ioportal.ingest import data_quality
from ioportal.ingest.data_quality import HOUR, TargetHour
from ioportal.site.models import Server, Target
from ioportal.telemetry import coverage
from ioportal.telemetry.coverage import Interval
from ioportal.telemetry.models import Coverage
from ioportal.web.common import exports
from ioportal.web.common.requests import changed_query
from ioportal.web.common.staff_only import staff_only
from ioportal.web.common.tables import Column, Table, bad_if, included
from ioportal.web.ingest.segments import tabs
from ioportal.web.templatetags import ioportal as show

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from django.http import HttpResponseBase, QueryDict
    from django.utils.safestring import SafeString

    from ioportal.web.common.requests import UserRequest

WIDTH = 1_000


def strip(
    observed: Sequence[tuple[datetime, datetime]], start: datetime, end: datetime
) -> list[tuple[float, float]]:
    """Lay intervals out as bars.

    Args:
        observed: disjoint intervals within [start, end), in order.
        start: start of the range.
        end: end of the range, after `start`.

    Returns:
        Position and width of each bar, in units of `WIDTH`. Bars are at least one unit wide, so
        that they are visible. Touching bars are merged.
    """
    bars: list[tuple[float, float]] = []
    for since, until in observed:
        left = WIDTH * ((since - start) / (end - start))
        right = max(left + 1, WIDTH * ((until - start) / (end - start)))
        if bars and left <= sum(bars[-1]):
            bars[-1] = (bars[-1][0], right - bars[-1][0])
        else:
            bars.append((left, right - left))
    return bars


_DEFAULT_RANGE = timedelta(days=3)
_NOTABLE = 0.05  # unexplained share of an hour


@dataclass(frozen=True)
class SourceCoverage:
    """The observed intervals of one source within a range."""

    source: Coverage.Source
    name: str
    filesystem: str
    simulated: bool
    observed: list[Interval]
    window: TimeRange

    @property
    def bars(self) -> list[tuple[float, float]]:
        """Bars of the strip."""
        return strip(self.observed, self.window.start, self.window.end)

    @property
    def strip_label(self) -> str:
        """The strip in words."""
        return f"observed {percent(self.share)} % of the range, {len(self.gaps)} gaps"

    @property
    def share(self) -> float:
        """The observed share of the range."""
        return (
            coverage.seconds(self.observed) / (self.window.end - self.window.start).total_seconds()
        )

    @cached_property
    def gaps(self) -> list[Interval]:
        """Gaps of `coverage.SHORTEST_GAP` or longer, including the ends of the range."""
        gaps = coverage.gaps(self.observed, self.window.start, self.window.end)
        return [gap for gap in gaps if gap.end - gap.start >= coverage.SHORTEST_GAP]

    @property
    def longest_gap(self) -> Interval | None:
        """The longest gap."""
        return max(self.gaps, key=lambda gap: gap.seconds, default=None)

    @property
    def last(self) -> datetime | None:
        """The last observed time."""
        return self.observed[-1].end if self.observed else None


@dataclass(frozen=True)
class Unexplained:
    """Operations of an MDT in md_stats and job_stats, by hour."""

    target: Target
    hours: list[TargetHour]
    window: TimeRange

    @property
    def bars(self) -> list[tuple[float, float]]:
        """Bars of the compared hours."""
        return self._strip(self.hours)

    @property
    def strip_label(self) -> str:
        """The strip in words."""
        return f"{len(self.hours)} hours compared, {len(self.notable)} above 5 %"

    @property
    def notable(self) -> list[TargetHour]:
        """Hours with more than 5 % of the operations unexplained."""
        return [hour for hour in self.hours if hour.share > _NOTABLE]

    @property
    def notable_bars(self) -> list[tuple[float, float]]:
        """Bars of the notable hours."""
        return self._strip(self.notable)

    @property
    def counted(self) -> int:
        """Operations in md_stats."""
        return sum(hour.counted for hour in self.hours)

    @property
    def share(self) -> float:
        """The unexplained share of the range."""
        return max(0.0, 1 - sum(hour.explained for hour in self.hours) / self.counted)

    @property
    def worst(self) -> TargetHour:
        """The hour with the largest unexplained share."""
        return max(self.hours, key=lambda hour: hour.share)

    def _strip(self, hours: list[TargetHour]) -> list[tuple[float, float]]:
        spans = [_within(Interval(hour.start, hour.start + HOUR), self.window) for hour in hours]
        return strip(spans, self.window.start, self.window.end)


def unexplained(window: TimeRange) -> list[Unexplained]:
    """Return the MDTs with operations in both sources within a range, by name."""
    targets = Target.objects.filter(kind=Target.Kind.MDT).select_related("filesystem")
    hours = data_quality.unexplained_operations(targets.order_by("name"), window.start, window.end)
    by_target: dict[Target, list[TargetHour]] = {}
    for hour in hours:
        by_target.setdefault(hour.target, []).append(hour)
    return [
        Unexplained(target, by_target[target], window)
        for target in sorted(by_target, key=lambda target: target.name)
    ]


def default_range() -> TimeRange | None:
    """Return the latest days with observations; None without any."""
    lasts = (coverage.last_observed(source, gaps).values() for source, _, gaps in _sources())
    last = max(chain.from_iterable(lasts), default=None)
    if last is None:
        return None
    end = last.replace(microsecond=0) + timedelta(seconds=1)
    return TimeRange(end - _DEFAULT_RANGE, end)


def rows(window: TimeRange) -> Iterator[SourceCoverage]:
    """Yield every source observed in a range, by kind and name."""
    for source, items, gaps in _sources():
        intervals = coverage.by_source(source, gaps, window.start, window.end)
        by_id = {
            pk: [_within(interval, window) for _, interval in group]
            for pk, group in groupby(intervals, key=itemgetter(0))
        }
        for item in items:
            if item.pk in by_id:
                filesystem = item.filesystem
                yield SourceCoverage(
                    source,
                    item.name,
                    filesystem.name,
                    filesystem.simulated,
                    by_id[item.pk],
                    window,
                )


def _sources() -> Iterator[tuple[Coverage.Source, Sequence[Server | Target], dict[int, timedelta]]]:
    """Yield kinds of source, their items by name, and the maximal time between reads by item."""
    servers = list(Server.objects.select_related("filesystem").order_by("name"))
    targets = list(Target.objects.select_related("filesystem").order_by("name"))
    server_ids = [server.pk for server in servers]
    yield Coverage.Source.RPC_TRACE, servers, coverage.contiguous(server_ids)
    yield Coverage.Source.REQ_HISTORY, servers, coverage.contiguous(server_ids)
    yield Coverage.Source.MDS_STATS, servers, coverage.polled(server_ids)
    poll_gaps = {target.pk: target.poll_gap for target in targets}
    yield Coverage.Source.JOB_STATS, targets, poll_gaps
    yield Coverage.Source.MD_STATS, targets, poll_gaps
    yield Coverage.Source.EXPORTS, targets, poll_gaps


def _within(interval: Interval, window: TimeRange) -> Interval:
    return Interval(max(interval.start, window.start), min(interval.end, window.end))


def _range(window: TimeRange) -> SafeString:
    return format_html(
        '<span class="ends"><span>{}</span><span>{}</span></span>',
        show.when(window.start),
        show.when(window.end),
    )


def _longest_gap(row: SourceCoverage) -> str:
    if not (gap := row.longest_gap):
        return show.when(None)
    start, end = map(local_text, (gap.start, gap.end))
    return format_html(
        '<span title="from {} to {}">{}</span>', start, end, show.seconds(gap.seconds)
    )


def _columns(window: TimeRange) -> tuple[Column[SourceCoverage], ...]:
    return (
        Column("kind", "Kind", "source__label", css="wrap"),
        Column("name", "Source"),
        Column(
            "strip",
            _range(window),
            lambda row: included("ingest/_strip.html", label=row.strip_label, bars=row.bars),
            css="strip-head",
        ),
        Column("share", "Observed", unit="%", form=show.hundredfold),
        Column(
            "gaps",
            "Gaps",
            lambda row: len(row.gaps),
            "of a minute or more",
            css=bad_if("gaps"),
        ),
        Column("longest_gap", "Longest gap", _longest_gap, "in this range"),
        Column("last", "Last observed"),
    )


def _unexplained_table(window: TimeRange, query: QueryDict) -> Table[Unexplained]:
    columns: tuple[Column[Unexplained], ...] = (
        Column("target", "MDT", "target__name"),
        Column(
            "strip",
            _range(window),
            lambda row: included(
                "ingest/_strip.html",
                label=row.strip_label,
                bars=row.bars,
                marked=row.notable_bars,
            ),
            css="strip-head",
        ),
        Column("counted", "Operations in md_stats", unit=""),
        Column("share", "Outside job_stats", unit="%", form=show.hundredfold),
        Column(
            "notable",
            "Hours above 5 %",
            lambda row: len(row.notable),
            "",
            css=bad_if("notable"),
        ),
        Column(
            "worst",
            "Highest hour",
            "worst__share",
            "%",
            form=show.hundredfold,
            note=lambda row: show.when(row.worst.start),
        ),
    )
    return Table(
        "Operations outside job_stats",
        columns,
        unexplained(window),
        css="coverage",
        exports_url=f"{reverse('unexplained_operations')}{changed_query(query)}",
        about="md_stats counts the operations of all clients, job_stats the operations of each job "
        "id. The difference belongs to clients without a job id, or to entries that were lost. "
        "Hours above 5 % are marked.",
    )


_HEADER = ["source", "name", "filesystem", "simulated", "start", "end"]
_HOURS: tuple[Column[TargetHour], ...] = (
    Column("target", "", "target__name"),
    Column("filesystem", "", "target__filesystem__name"),
    Column("simulated", "", "target__filesystem__simulated"),
    Column("hour", "", "start"),
    Column("md_stats", "", "counted"),
    Column("job_stats", "", "explained"),
)


@require_safe
@staff_only
@exports.accept("csv", "json")
def coverage_page(request: UserRequest) -> HttpResponseBase:
    """Observed intervals in a range."""
    window, errors = _window(request)
    sources = list(rows(window)) if window else []
    if exports.requested_format(request):
        if errors:
            return exports.invalid_query({"range": errors})
        intervals = (
            (row.source.value, row.name, row.filesystem, row.simulated, *interval)
            for row in sources
            for interval in row.observed
        )
        return exports.response(request, "coverage", _about(window), _HEADER, intervals)
    context = {
        **tabs("coverage"),
        "window": window,
        "errors": errors,
        "table": window
        and Table("Coverage", _columns(window), sources, css="coverage", is_grouped=True),
        "unexplained": window and _unexplained_table(window, request.GET),
        "simulated": any(row.simulated for row in sources),
    }
    return render(request, "ingest/coverage.html", context)


@require_safe
@staff_only
@exports.accept("csv", "json")
def unexplained_page(request: UserRequest) -> HttpResponseBase:
    """Export of metadata operations by MDT and hour, in md_stats and in job_stats."""
    window, errors = _window(request)
    if errors:
        return exports.invalid_query({"range": errors})
    hours = [hour for row in unexplained(window) for hour in row.hours] if window else []
    table = Table("Unexplained", _HOURS, hours)
    return exports.response(request, "unexplained", _about(window), *table.export)


def _window(request: UserRequest) -> tuple[TimeRange | None, list[str]]:
    default = default_range()
    return TimeRange.or_default(request.GET, default) if default else (None, [])


def _about(window: TimeRange | None) -> dict[str, Any]:
    return {"start": window.start, "end": window.end} if window else {}
