"""One metric of the overview in a range: who is busy, and a stacked chart for each source."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import polars as pl
from django.urls import reverse

from ioportal.activity import top_consumers
from ioportal.analysis.populations import coarse
from ioportal.analysis.timelines import OBSERVED, Known, Steps, rates, within
from ioportal.charts import palette
from ioportal.charts import timelines as charts
from ioportal.reporting.principals import Name, named
from ioportal.reporting.ranges import TimeRange
from ioportal.reporting.series import bin_width, seconds, seconds_within, without
from ioportal.telemetry import levels, retention, rollups
from ioportal.web.flags import badges

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from django.contrib.auth.models import User

    from ioportal.activity.top_consumers import Amount, Bin, Who
    from ioportal.charts.time_axis import Figure
    from ioportal.charts.timelines import Chart
    from ioportal.flags.models import Flag
    from ioportal.telemetry.coverage import Interval
    from ioportal.telemetry.levels import Level
    from ioportal.web.overview.query import Asked
_BINS = tuple(timedelta(seconds=n) for n in (10, 60, 120, 600, 1_800))
_BINS_SHOWN = 150
_NAMED = 6  # in the charts; the rest is one layer
_LISTED = 15
_CHARTS = 8  # of servers or targets, the busiest
_LEAST_JOBS = 10  # of others that are told of together
_OWN_REST = "your other jobs"  # (no name has a blank)
TOLD = "others are told"  # the column of windows that says so


@dataclass(frozen=True)
class Busy:
    """One principal, or all that share a name, and what it did."""

    words: str
    address: str  # of its page; "" where it has none
    who: frozenset[Who]
    nodes: int
    total: float
    share: float | None
    newest: float | None  # per second; None: of others who are told of together
    mean: float | None  # per second

    @property
    def newest_per_node(self) -> float | None:
        """Its newest rate, over its nodes."""
        return self.newest / self.nodes if self.nodes and self.newest is not None else None

    @property
    def trend(self) -> float | None:
        """How many times its mean rate the newest one is."""
        return self.newest / self.mean if self.mean and self.newest is not None else None


def _worst(flags: Mapping[Who, Flag], one: Busy) -> Flag | None:
    found = [flags[who] for who in one.who if who in flags]
    return max(found, key=lambda flag: (flag.severity, flag.until), default=None)


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

    def _rows(self, level: Level) -> top_consumers.Rows:
        """What to read of a level for the charts."""
        raise NotImplementedError

    def _amounts(self) -> list[Amount]:
        raise NotImplementedError

    def _windows(self, source: int) -> pl.DataFrame:
        """Return what is told of a source as windows with the columns of `kinds` and `TOLD`."""
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

    def _seen(self) -> pl.DataFrame:
        """Return when each source was observed: a frame of `OBSERVED`."""
        raise NotImplementedError

    def _pending(self) -> dict[int, list[Interval]]:
        """Return when the figures of each source are not attributed yet."""
        raise NotImplementedError

    @cached_property
    def observed(self) -> pl.DataFrame:
        """When each source was observed: a frame of `OBSERVED`."""
        return self._seen()

    @cached_property
    def pending(self) -> dict[int, list[Interval]]:
        """When the figures of each source are not attributed yet."""
        return self._pending()

    @cached_property
    def attributed(self) -> pl.DataFrame:
        """When each source was observed and its figures are attributed: a frame of `OBSERVED`."""
        return without(self.observed, self.pending)

    @property
    def is_observed(self) -> bool:
        """Whether any source was observed in the range, attributed or not."""
        return not self.observed.is_empty()

    @property
    def is_attributed(self) -> bool:
        """Whether any figure of the range is attributed."""
        return not self.attributed.is_empty()

    @cached_property
    def reached(self) -> dict[int, datetime]:
        """The last moment of the range up to which each source is attributed."""
        lasts = self.attributed.group_by("source").agg(pl.col("end").max()).iter_rows()
        return {source: min(end, self.window.end) for source, end in lasts}

    @cached_property
    def observed_s(self) -> float:
        """Seconds of the range in which some source was observed."""
        return seconds_within(self.observed, self.window.start, self.window.end)

    @cached_property
    def attributed_s(self) -> float:
        """Seconds of the range in which some source is attributed: what rates divide by."""
        return seconds_within(self.attributed, self.window.start, self.window.end)

    @cached_property
    def pending_s(self) -> float:
        """Seconds of the range in which some source is not attributed yet."""
        spans = [(source, *span) for source, spans in self.pending.items() for span in spans]
        frame = pl.DataFrame(spans, schema=OBSERVED, orient="row")
        return seconds_within(frame, self.window.start, self.window.end)

    @cached_property
    def amounts(self) -> list[Amount]:
        """What every principal did."""
        return self._amounts() if self.is_attributed else []

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
        return sorted(found, key=lambda one: (-(one.newest or 0), -one.total, one.words))

    def _busy(self, name: Name, amounts: list[Amount]) -> Busy:
        """Return what some did together; its share depends on what may be told of others."""
        total = sum(amount.total for amount in amounts)
        return Busy(
            name.words,
            name.address,
            frozenset(amount.who for amount in amounts),
            name.nodes,
            total,
            None,
            sum(map(self._newest_rate, amounts)),
            total / self.attributed_s if self.attributed_s else None,
        )

    @cached_property
    def _others_told(self) -> list[Bin]:
        """What others did, where they are so many that their sum may be told."""
        return [one for source in self.sources for one in self._told(source) if not one.layer]

    @property
    def others_are_many(self) -> bool:
        """Whether anything of others may be told."""
        return self.is_staff or bool(self._others_told)

    @cached_property
    def _whole(self) -> float:
        """What shares are parts of: all that may be told; 0: others are too few."""
        if self.is_staff:
            return self.total
        if not self._others_told:
            return 0.0
        own = sum(one.total for one in self.amounts if one.who in self._names)
        return own + sum(one.amount for one in self._others_told)

    def _with_share(self, one: Busy) -> Busy:
        return replace(one, share=one.total / self._whole if self._whole else None)

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
        """The first of the busy, and whom the charts name: a storm that is over stays in sight."""
        listed = (one for n, one in enumerate(self.busy) if n < _LISTED or one in self.layers)
        return [self._with_share(one) for one in listed]

    @cached_property
    def others(self) -> Busy | None:
        """All that is not listed; None: nothing, or too few to be told of."""
        if self.is_staff:
            listed = frozenset().union(*(one.who for one in self.listed))
            rest = [amount for amount in self.amounts if amount.who not in listed]
            return self._with_share(self._busy(Name(palette.ALL_OTHERS), rest)) if rest else None
        if not self._others_told:
            return None
        total = sum(one.amount for one in self._others_told)
        mean = total / self.attributed_s if self.attributed_s else None
        others = Busy(palette.ALL_OTHERS, "", frozenset(), 0, total, None, newest=None, mean=mean)
        return self._with_share(others)

    @cached_property
    def layers(self) -> list[Busy]:
        """Those whom the charts name: busiest now or in all of the range."""

        def weight(one: Busy) -> float:
            newest = (one.newest or 0) / self.newest_total if self.newest_total else 0.0
            return max(newest, one.total / self.total if self.total else 0.0)

        return sorted(self.busy, key=lambda one: (-weight(one), one.words))[:_NAMED]

    @cached_property
    def colours(self) -> dict[str, str]:
        """The token of each layer, the same in all charts and in the table."""
        return palette.principals(list(self.kinds))

    @cached_property
    def top(self) -> list[tuple[Busy, str, Flag | None]]:
        """The rows of the table, each with its colour in the charts, and its worst flag."""
        rows = [*self.listed, *([self.others] if self.others else [])]
        listed = [who for one in self.listed for who in one.who]
        flags = badges.of_principals(listed, self._user)
        return [
            (one, self.colours.get(one.words, palette.REST), _worst(flags, one)) for one in rows
        ]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The names of the charts' layers."""
        own_rest = [_OWN_REST] if self._own_rest else []
        return (*(one.words for one in self.layers), *own_rest, palette.ALL_OTHERS)

    @cached_property
    def _own_rest(self) -> frozenset[Who]:
        """Visible principals without a layer of their own: among others they would hide a few."""
        if self.is_staff:
            return frozenset()
        return frozenset(self._names).difference(*(one.who for one in self.layers))

    @cached_property
    def _binned(self) -> list[Bin]:
        if not self.is_attributed:
            return []
        return top_consumers.bins(
            self._rows(self.level),
            self._rows(self.level_of_all),
            [*(one.who for one in self.layers), *([self._own_rest] if self._own_rest else [])],
            self.bin,
            self._bins.start,
            count_unshown=not self.is_staff,
        )

    def _told(self, source: int) -> list[Bin]:
        """Return what may be shown of one source: of others, coarse sums over enough jobs."""
        found = [one for one in self._binned if one.source == source]
        if self.is_staff:
            return found
        return [
            one if one.layer else one._replace(amount=coarse(one.amount))
            for one in found
            if one.layer or one.unshown_jobs >= _LEAST_JOBS
        ]

    def steps(self, source: int) -> Steps:
        """Return the rates on one source, by the charts' layers; null: others are too few."""
        steps = self._steps(source, self._windows(source), (*self.kinds, TOLD))
        is_told = pl.lit(self.is_staff) | (pl.col(TOLD) > 0)
        others = pl.when(is_told).then(pl.col(palette.ALL_OTHERS))
        frame = steps.frame.with_columns(others.alias(palette.ALL_OTHERS)).drop(TOLD)
        return replace(steps, frame=frame, kinds=self.kinds)

    def _steps(self, source: int, windows: pl.DataFrame, kinds: Sequence[str]) -> Steps:
        seen = self.attributed.filter(pl.col("source") == source)
        steps = rates(windows, seen, kinds, 1)
        pending = tuple(self.pending.get(source, ()))
        return within(replace(steps, pending=pending), self.window.start, self.window.end)

    def times(self, source: int) -> Times | None:  # noqa: ARG002
        """Return how long a source's requests took; None: that is not known."""
        return None

    @cached_property
    def shown(self) -> list[Shown]:
        """A chart for each source, busiest first."""
        amounts: dict[int, float] = defaultdict(float)
        for one in self._binned:
            amounts[one.source] += one.amount
        seen = [(source, self.sources[source]) for source in self._observed_sources]
        seen.sort(key=lambda item: (-amounts[item[0]], item[1]))
        return [Shown(self, source, name) for source, name in seen[:_CHARTS]]

    @cached_property
    def _observed_sources(self) -> set[int]:
        return set(self.observed["source"])

    @property
    def more_sources(self) -> int:
        """How many sources have no chart though they were observed."""
        return max(0, len(self._observed_sources) - _CHARTS)

    @property
    def unobserved(self) -> list[str]:
        """The names of sources of which nothing is known."""
        observed = self._observed_sources
        return sorted(name for source, name in self.sources.items() if source not in observed)

    def _pivoted(self, source: int) -> pl.DataFrame:
        """Return what is told of a source as windows with a column per layer."""
        words = dict(enumerate((palette.ALL_OTHERS, *self.kinds[:-1])))
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
        missing = [
            pl.lit(None, pl.Float64).alias(kind)
            for kind in self.kinds
            if kind not in pivoted.columns
        ]
        return (
            pivoted.with_columns(seconds("start", "end").alias("seconds"), *missing)
            .with_columns(pl.col(palette.ALL_OTHERS).is_not_null().cast(pl.Float64).alias(TOLD))
            .with_columns(pl.col(list(self.kinds)).fill_null(0.0))
        )

    def twin(self) -> Iterator[tuple[Any, ...]]:
        """Yield rates of all charts: source, start, end, principal, rate per second.

        The rate is None while attribution is pending, and where other people's jobs are too few.
        """
        for shown in self.shown:
            steps = shown.steps
            known = steps.frame.select("start", "end", *steps.kinds).iter_rows()
            pending = [
                (gap.start, gap.end, *(None for _ in steps.kinds))
                for gap in steps.gaps(self.window.start, self.window.end)
                if gap.known is Known.PENDING
            ]
            for start, end, *values in sorted([*known, *pending], key=itemgetter(0)):
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
    def times(self) -> Times | None:
        """How long its requests took; None: that is not known of a target."""
        return self.section.times(self.source)


@dataclass(frozen=True)
class Times:
    """How long the requests of one source took."""

    section: Section
    source: int
    chart: Chart
    steps: Steps

    @property
    def script_id(self) -> str:
        """The id of the element that carries the figure."""
        return f"figure-{self.chart.name}-{self.source}"

    @property
    def figure(self) -> Figure:
        """The chart for Plotly."""
        return charts.figure(self.chart, self.steps, self.section.window.axis)
