"""Who is on top now: rates on metadata targets and servers, stacked by the busiest."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl
from django.conf import settings
from django.urls import reverse

from collectors.tables import UTC_US
from ioportal.analysis.timelines import OBSERVED, WINDOW, Steps, clipped, rates, within
from ioportal.charts import palette
from ioportal.charts import timelines as charts
from ioportal.charts.timelines import Chart, Style
from ioportal.jobs import overview
from ioportal.jobs.models import Filesystem, Server, Target
from ioportal.telemetry import coverage, levels, retention, rollups
from ioportal.telemetry.models import Coverage, Principal
from ioportal.web.principals import BYS, Name, named
from ioportal.web.ranges import TimeRange
from ioportal.web.series import (
    bin_width,
    last_observed,
    mean_times,
    observed,
    observed_apart,
    seconds,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from django.contrib.auth.models import User
    from django.http import QueryDict

    from ioportal.charts.time_axis import Figure
    from ioportal.jobs.overview import Amount, Bin, Who
    from ioportal.telemetry.levels import Level
    from ioportal.telemetry.rollups import Piece

LASTS = {
    "15m": timedelta(minutes=15),
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
}
DEFAULT_LAST = "1h"
REFRESH_S = 10
_BINS = tuple(timedelta(seconds=n) for n in (10, 60, 120, 600, 1_800))
_BINS_SHOWN = 150
_NEWEST = timedelta(minutes=1)
_NAMED = 6  # in the charts; the rest is one layer
_LISTED = 15
_CHARTS = 8  # of servers or targets, the busiest
_LEAST_JOBS = 10  # of others that are told of together


@dataclass(frozen=True)
class Asked:
    """What the address asks for: how long, up to when, how jobs are told apart."""

    window: TimeRange
    last: str  # "": a range of its own
    by: str
    is_live: bool  # it ends now

    @classmethod
    def of(cls, query: QueryDict) -> Asked:
        """Read ``start`` and ``end``, or ``last``, and ``by``.

        Without newer data, the last hour is the one up to the newest: an empty page tells nothing.

        Raises:
            ValidationError: one of the times is none, or the range is empty.
        """
        by = query.get("by", "")
        by = by if by in BYS else BYS[0]
        last = query.get("last", "")
        last = last if last in LASTS else DEFAULT_LAST
        now = rollups.ceil(datetime.now(UTC), _BINS[0])
        newest = newest_data()
        is_live = newest is None or newest > now - LASTS[last]
        end = now if is_live or newest is None else rollups.ceil(newest, _BINS[0])
        window = TimeRange.from_query(query, TimeRange(end - LASTS[last], end))
        if window.asked:
            return cls(window, "", by, is_live=False)
        return cls(window, last, by, is_live=is_live)


def newest_data() -> datetime | None:
    """Return when any metadata server or target was observed last."""
    lasts = [
        *coverage.last_observed(Coverage.Source.RPC_TRACE, coverage.whole(_servers())).values(),
        *last_observed(Coverage.Source.JOB_STATS, _targets()).values(),
    ]
    return max(lasts, default=None)


def _servers() -> dict[int, str]:
    return dict(Server.objects.filter(kind=Server.Kind.MDS).values_list("pk", "name"))


def _targets() -> list[Target]:
    return list(Target.objects.filter(kind=Target.Kind.MDT))


@dataclass(frozen=True)
class Busy:
    """One principal, or all that share a name, and what it did."""

    words: str
    address: str  # of its page; "" where it has none
    who: frozenset[Who]
    nodes: int
    total: float
    share: float | None
    newest: float  # per second
    mean: float | None  # per second

    @property
    def newest_per_node(self) -> float | None:
        """Its newest rate, over its nodes."""
        return self.newest / self.nodes if self.nodes else None

    @property
    def trend(self) -> float | None:
        """How many times its mean rate the newest one is."""
        return self.newest / self.mean if self.mean else None


class Section:
    """One metric in one range: the busiest, and a chart for each source."""

    name: str  # in addresses
    title: str
    unit: str
    newest_words: str
    of: tuple[Level, ...]
    of_all: tuple[Level, ...]  # the same of all principals together
    chart: Chart

    def __init__(self, asked: Asked, user: User) -> None:
        self.asked = asked
        self._user = user
        self.window = asked.window
        kept, kept_of_all = (
            retention.finest(of, self.window.start, self.window.end) or of[-1]
            for of in (self.of, self.of_all)
        )
        least = (self.window.end - self.window.start) / _BINS_SHOWN
        self.bin = bin_width(least, max(kept.width, kept_of_all.width), _BINS)
        self.level = self._coarsest(self.of, kept)
        self.level_of_all = self._coarsest(self.of_all, kept_of_all)
        self._bins = TimeRange(
            rollups.floor(self.window.start, self.bin), rollups.ceil(self.window.end, self.bin)
        )

    def _coarsest(self, of: Sequence[Level], kept: Level) -> Level:
        """Return the level to read: the coarsest that fills bins, or what is left of them."""
        return levels.coarsest(of, self.bin) if kept is of[0] else kept

    @cached_property
    def sources(self) -> dict[int, str]:
        """The servers or targets, by key."""
        raise NotImplementedError

    def _rows(self, level: Level) -> overview.Rows:
        """What to read of a level for the charts."""
        raise NotImplementedError

    def _amounts(self) -> list[Amount]:
        raise NotImplementedError

    def _windows(self, source: int) -> pl.DataFrame:
        raise NotImplementedError

    @property
    def address(self) -> str:
        """Where it is asked for alone."""
        return reverse("overview_section", args=[self.name])

    @property
    def window_s(self) -> float:
        """How long the range is."""
        return (self.window.end - self.window.start).total_seconds()

    @property
    def bin_s(self) -> float:
        """How long a bin is."""
        return self.bin.total_seconds()

    @property
    def is_staff(self) -> bool:
        """Whether everybody is named."""
        return self._user.is_staff

    @cached_property
    def observed(self) -> pl.DataFrame:
        """When each source was observed: a frame of `OBSERVED`."""
        raise NotImplementedError

    @property
    def is_observed(self) -> bool:
        """Whether anything is known of the range."""
        return not self.observed.is_empty()

    @cached_property
    def reached(self) -> dict[int, datetime]:
        """The last moment of the range in which each source was observed."""
        lasts = self.observed.group_by("source").agg(pl.col("end").max())
        return {source: min(end, self.window.end) for source, end in lasts.iter_rows()}

    @cached_property
    def observed_s(self) -> float:
        """Seconds of the range in which some source was observed."""
        return self._seconds(self.window.start, self.window.end)

    def _seconds(self, start: datetime, end: datetime) -> float:
        """Return for how long of [start, end) some source was observed."""
        begin, stop = (pl.lit(moment, UTC_US) for moment in (start, end))
        inside = self.observed.select(
            pl.lit(0, pl.Int64).alias("source"),
            pl.max_horizontal("start", begin).alias("start"),
            pl.min_horizontal("end", stop).alias("end"),
        ).filter(pl.col("end") > pl.col("start"))
        steps = rates(pl.DataFrame(schema=WINDOW), inside, (), 1)
        return float(steps.frame.select(seconds("start", "end").sum()).item() or 0.0)

    @cached_property
    def amounts(self) -> list[Amount]:
        """What every principal did."""
        return self._amounts() if self.is_observed else []

    @cached_property
    def total(self) -> float:
        """What all of them did."""
        return sum(amount.total for amount in self.amounts)

    @cached_property
    def newest_total(self) -> float:
        """What all of them did per second in the newest time."""
        return sum(self._newest_rate(amount) for amount in self.amounts)

    def _newest_rate(self, amount: Amount) -> float:
        raise NotImplementedError

    @cached_property
    def busy(self) -> list[Busy]:
        """Everybody who may be named, busiest now first."""
        together: dict[Name, list[Amount]] = defaultdict(list)
        for amount in self.amounts:
            if name := self._names.get(amount.who):
                together[name].append(amount)
        found = [self._busy(name, amounts) for name, amounts in together.items()]
        return sorted(found, key=lambda one: (-one.newest, -one.total, one.words))

    def _busy(self, name: Name, amounts: list[Amount]) -> Busy:
        total = sum(amount.total for amount in amounts)
        return Busy(
            name.words,
            name.address,
            frozenset(amount.who for amount in amounts),
            name.nodes,
            total,
            total / self.total if self.total and self.others_are_many else None,
            sum(map(self._newest_rate, amounts)),
            total / self.observed_s if self.observed_s else None,
        )

    @cached_property
    def others_are_many(self) -> bool:
        """Whether so many jobs of others are in the range that their sum may be told."""
        if self.is_staff:
            return True
        jobs = {who for who, *_ in self.amounts if who[0] == Principal.JOB}
        return len(jobs - self._names.keys()) >= _LEAST_JOBS

    @cached_property
    def _names(self) -> dict[Who, Name]:
        """The names of those who may be named and matter."""
        ranked = sorted(self.amounts, key=lambda amount: -max(self._shares(amount)))
        return named([amount.who for amount in ranked], self._user, self.asked.by)

    def _shares(self, amount: Amount) -> tuple[float, float]:
        """Return a principal's share of the range and of the newest time."""
        newest = self._newest_rate(amount)
        return (
            amount.total / self.total if self.total else 0.0,
            newest / self.newest_total if self.newest_total else 0.0,
        )

    @cached_property
    def listed(self) -> list[Busy]:
        """The first of the busy."""
        return self.busy[:_LISTED]

    @cached_property
    def others(self) -> Busy | None:
        """All that is not listed; None: nothing, or too few to be told of."""
        listed = frozenset().union(*(one.who for one in self.listed))
        rest = [amount for amount in self.amounts if amount.who not in listed]
        if not rest or not self.others_are_many:
            return None
        return self._busy(Name(palette.ALL_OTHERS), rest)

    @cached_property
    def layers(self) -> list[Busy]:
        """Those whom the charts name: busiest now or in all of the range."""

        def weight(one: Busy) -> float:
            newest = one.newest / self.newest_total if self.newest_total else 0.0
            return max(newest, one.total / self.total if self.total else 0.0)

        return sorted(self.busy, key=lambda one: (-weight(one), one.words))[:_NAMED]

    @cached_property
    def colours(self) -> dict[str, str]:
        """The token of each layer, the same in all charts and in the table."""
        return palette.principals(list(self.kinds))

    @cached_property
    def top(self) -> list[tuple[Busy, str]]:
        """The rows of the table, each with its colour in the charts."""
        rows = [*self.listed, *([self.others] if self.others else [])]
        return [(one, self.colours.get(one.words, palette.REST)) for one in rows]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The names of the charts' layers."""
        return (*(one.words for one in self.layers), palette.ALL_OTHERS)

    @cached_property
    def _binned(self) -> list[Bin]:
        if not self.is_observed:
            return []
        return overview.bins(
            self._rows(self.level),
            self._rows(self.level_of_all),
            [one.who for one in self.layers],
            self.bin,
            self._bins.start,
            count_unshown=not self.is_staff,
        )

    def _told(self, source: int) -> list[Bin]:
        """Return what may be shown of one source: a sum of others needs enough jobs."""
        return [
            one
            for one in self._binned
            if one.source == source
            and (one.layer > 0 or self.is_staff or one.unshown_jobs >= _LEAST_JOBS)
        ]

    def steps(self, source: int) -> Steps:
        """Return the rates on one source, by the charts' layers."""
        return self._steps(source, self._windows(source), self.kinds)

    def _steps(self, source: int, windows: pl.DataFrame, kinds: Sequence[str]) -> Steps:
        seen = self.observed.filter(pl.col("source") == source)
        return within(rates(windows, seen, kinds, 1), self.window.start, self.window.end)

    @cached_property
    def shown(self) -> list[Shown]:
        """A chart for each source, busiest first."""
        amounts: dict[int, float] = defaultdict(float)
        for one in self._binned:
            amounts[one.source] += one.amount
        seen = [(source, name) for source, name in self.sources.items() if source in self.reached]
        seen.sort(key=lambda item: (-amounts[item[0]], item[1]))
        return [Shown(self, source, name) for source, name in seen[:_CHARTS]]

    @property
    def more_sources(self) -> int:
        """How many sources have no chart though they were observed."""
        return max(0, len(self.reached) - _CHARTS)

    @property
    def unobserved(self) -> list[str]:
        """The names of sources of which nothing is known."""
        return sorted(name for source, name in self.sources.items() if source not in self.reached)

    def _pivoted(self, source: int) -> pl.DataFrame:
        """Return what is told of a source as windows with a column per layer."""
        words = dict(enumerate((palette.ALL_OTHERS, *(one.words for one in self.layers))))
        frame = pl.DataFrame(
            [
                (one.source, one.start, one.end, words[one.layer], one.amount)
                for one in self._told(source)
            ],
            schema={**OBSERVED, "who": pl.String, "amount": pl.Float64},
            orient="row",
        )
        pivoted = frame.pivot(
            "who", index=["source", "start", "end"], values="amount", aggregate_function="sum"
        )
        missing = [pl.lit(0.0).alias(kind) for kind in self.kinds if kind not in pivoted.columns]
        return pivoted.with_columns(
            seconds("start", "end").alias("seconds"), *missing
        ).with_columns(pl.col(list(self.kinds)).fill_null(0.0))

    def twin(self) -> Iterator[tuple[Any, ...]]:
        """Yield rates of all charts: source, start, end, principal, rate per second."""
        for shown in self.shown:
            steps = shown.steps
            for start, end, *values in steps.frame.select("start", "end", *steps.kinds).iter_rows():
                for kind, value in zip(steps.kinds, values, strict=True):
                    yield shown.name, start, end, kind, value


@dataclass(frozen=True)
class Shown:
    """One source of a section."""

    section: Section
    source: int
    name: str

    @property
    def steps(self) -> Steps:
        """Its rates."""
        return self.section.steps(self.source)

    @property
    def script_id(self) -> str:
        """The id of the element that carries the figure."""
        return f"figure-{self.section.name}-{self.source}"

    @property
    def figure(self) -> Figure:
        """The chart for Plotly; a click on a job goes to it."""
        section = self.section
        chart = replace(section.chart, colours=lambda names: {n: section.colours[n] for n in names})
        links = {one.words: one.address for one in section.layers if one.address}
        return charts.figure(chart, self.steps, section.window.axis, links=links)

    @property
    def times(self) -> Latency | None:
        """How long its requests took; None: that is not known of a target."""
        section = self.section
        return Latency(section, self.source) if isinstance(section, Rpcs) else None


@dataclass(frozen=True)
class Latency:
    """Mean service and queue time of one server."""

    section: Rpcs
    source: int

    @property
    def chart(self) -> Chart:
        """What is drawn."""
        return LATENCY

    @property
    def script_id(self) -> str:
        """The id of the element that carries the figure."""
        return f"figure-latency-{self.source}"

    @property
    def figure(self) -> Figure:
        """The chart for Plotly."""
        return charts.figure(LATENCY, self.section.latency(self.source), self.section.window.axis)


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
        return _targets()

    @cached_property
    def sources(self) -> dict[int, str]:
        """The MDTs."""
        return {target.pk: target.name for target in self._mdts}

    @cached_property
    def observed(self) -> pl.DataFrame:
        """When each was read."""
        return observed(Coverage.Source.JOB_STATS, self._mdts, self._bins)

    def _coarsest(self, of: Sequence[Level], kept: Level) -> Level:  # noqa: ARG002
        """Return what is left: sums of polls have other bounds, and totals are of polls."""
        is_whole = retention.finest(levels.IO_LEVELS, self.window.start, self.window.end)
        return kept if is_whole is levels.IO_WINDOWS else levels.IO_TEN_MINUTES

    def _rows(self, level: Level) -> overview.Rows:
        """Intervals that begin in the range or shortly before: these reach into it."""
        return self._of(*rollups.pieces(level, self._begin, self._end))

    def _of(self, *pieces: Piece) -> overview.Rows:
        return overview.Rows(pieces, list(self.sources))

    @property
    def _begin(self) -> datetime:
        return rollups.floor(self._bins.start - settings.POLL_GAP, levels.IO_TEN_MINUTES.width)

    @property
    def _end(self) -> datetime:
        return rollups.ceil(self._bins.end, levels.IO_TEN_MINUTES.width)

    def _amounts(self) -> list[Amount]:
        """Sums need no steps: coarser rows tell them, but for the edges and the newest time."""
        coarse = levels.IO_TEN_MINUTES
        ahead = self.window.end + timedelta(days=1)  # of what was never read
        reached = [self.reached.get(source, ahead) for source in self.sources]
        newest = overview.reaching_from(self._rows(self.level_of_all), reached) or self._begin
        cut = max(rollups.floor(newest, coarse.width), self._begin)
        begin = min(rollups.ceil(self.window.start, coarse.width), cut)
        rows = self._of(
            *rollups.pieces(self.level, self._begin, begin),
            *rollups.pieces(coarse, begin, cut),
            *rollups.pieces(self.level, cut, self._end),
        )
        return overview.operation_amounts(rows, self.window.start, self.window.end, reached)

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
    of_all = levels.TOTAL_LEVELS
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
        return _servers()

    @cached_property
    def observed(self) -> pl.DataFrame:
        """When each was traced."""
        apart = coverage.whole(self.sources)
        return observed_apart(Coverage.Source.RPC_TRACE, apart, self._bins)

    def _rows(self, level: Level) -> overview.Rows:
        pieces = rollups.pieces(level, self._bins.start, self._bins.end)
        return overview.Rows(pieces, list(self.sources))

    @cached_property
    def _newest(self) -> TimeRange:
        """The newest time of which something is known, in whole bins."""
        end = max(self.reached.values())
        return TimeRange(rollups.floor(end - _NEWEST, min(self.bin, self.level.width)), end)

    def _amounts(self) -> list[Amount]:
        """Sums need no steps: coarser rows tell them, but for the newest time."""
        coarse = self.of[-1]
        cut = max(rollups.floor(self._newest.start, coarse.width), self._bins.start)
        begin = min(rollups.ceil(self._bins.start, coarse.width), cut)
        pieces = [
            *rollups.pieces(self.level, self._bins.start, begin),
            *rollups.pieces(coarse, begin, cut),
            *rollups.pieces(self.level, cut, self._bins.end),
        ]
        rows = overview.Rows(pieces, list(self.sources))
        return overview.rpc_amounts(rows, self._newest.start)

    @cached_property
    def _newest_s(self) -> float:
        return self._seconds(self._newest.start, self._newest.end)

    def _newest_rate(self, amount: Amount) -> float:
        return amount.newest / self._newest_s if self._newest_s else 0.0

    def _windows(self, source: int) -> pl.DataFrame:
        windows = self._pivoted(source)
        return clipped(windows, self.observed, self.kinds)

    def latency(self, source: int) -> Steps:
        """Return the mean service and queue time of the timed RPCs, in microseconds."""
        sums = ("timed", "service_us_sum", "total_us_sum")
        rows = [
            (one.source, one.start, one.end, 0.0, one.timed, one.service_us, one.total_us)
            for one in self._told(source)
        ]
        frame = pl.DataFrame(
            rows, schema={**WINDOW, **dict.fromkeys(sums, pl.Float64)}, orient="row"
        )
        summed = frame.group_by(list(WINDOW), maintain_order=True).agg(pl.col(sums).sum())
        return mean_times(self._steps(source, clipped(summed, self.observed, sums), sums))


LATENCY = Chart(
    "latency",
    "Service and queue time",
    "µs",
    "Means over the timed RPCs: in the handler, and waiting for it.",
    Style.LINES,
    {"service": "mean service time", "queue": "mean queue time"},
)
SECTIONS: dict[str, type[Section]] = {section.name: section for section in (Operations, Rpcs)}


def is_registered() -> bool:
    """Tell whether there is anything to watch."""
    return bool(_servers() or _targets())


def is_simulated() -> bool:
    """Tell whether some of it is made up."""
    return Filesystem.objects.filter(simulated=True).exists()
