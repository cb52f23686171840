"""One metric of the overview in a range: a table of the busiest, and a chart for each source."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import polars as pl
from django.urls import reverse

from ioportal.core.charts import palette
from ioportal.core.charts.axes import kind_of
from ioportal.core.timelines import OBSERVED, Known, Steps, rates, within
from ioportal.findings.flags.flag_texts import worst_by_principal
from ioportal.load import top_consumers
from ioportal.load.principals import Name, named
from ioportal.load.series import seconds
from ioportal.site.contacts import contacts
from ioportal.web.overview import query
from ioportal.web.overview.charts import SourceChart
from ioportal.web.overview.time_base import Observation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from django.contrib.auth.models import User

    from ioportal.core.charts.time_axis import Mark
    from ioportal.core.charts.timelines import Chart
    from ioportal.findings.models import Flag
    from ioportal.load.top_consumers import Amount, Bin, PrincipalKey
    from ioportal.site.contacts import Contact
    from ioportal.telemetry.levels import Level
    from ioportal.web.overview.charts import LatencyChart
    from ioportal.web.overview.query import OverviewQuery

EXPORT_COLUMNS = ("source", "start", "end", "principal", "per_second")
OTHERS_VISIBLE = "others visible"  # a column of windows
_LAYERS = 6  # of the charts; the rest is one layer
_TABLE_ROWS = 15
_MAX_CHARTS = 8  # of the busiest sources
_OWN_REST = "your other jobs"


@dataclass(frozen=True)
class Consumer:
    """One principal, or all with the same name, and its consumption."""

    name: str
    address: str  # of its page; "" where it has none
    principals: frozenset[PrincipalKey]
    nodes: int
    total: float
    share: float | None
    latest: float | None  # per second; None: a sum over other users' jobs
    mean: float | None  # per second
    user: str = ""  # who is responsible; "": unknown, or several

    @property
    def latest_per_node(self) -> float | None:
        """The latest rate per node."""
        return self.latest / self.nodes if self.nodes and self.latest is not None else None

    @property
    def trend(self) -> float | None:
        """The latest rate over the mean rate."""
        return self.latest / self.mean if self.mean and self.latest is not None else None

    def worst_flag(self, flags: Mapping[PrincipalKey, Flag]) -> Flag | None:
        """Return the worst of its principals' flags."""
        own = [flags[principal] for principal in self.principals if principal in flags]
        return max(own, key=lambda flag: (flag.severity, flag.until), default=None)


class Section(Observation):
    """One metric in one range: the busiest principals, and a chart for each source."""

    name: str  # in addresses
    title: str
    unit: str
    latest_title: str
    chart: Chart

    def __init__(self, query: OverviewQuery, user: User, marks: Sequence[Mark] = ()) -> None:
        super().__init__(query.window)
        self.query = query
        self.marks = marks
        self._user = user

    def _rows(self, level: Level) -> top_consumers.Rows:
        """Return the rows of a level that the charts read."""
        raise NotImplementedError

    def _amounts(self) -> list[Amount]:
        raise NotImplementedError

    def _latest_rate(self, amount: Amount) -> float:
        raise NotImplementedError

    def _windows(self, source: int) -> pl.DataFrame:
        """Return a source's windows, with the columns of `kinds` and `OTHERS_VISIBLE`."""
        raise NotImplementedError

    def latency(self, source: int) -> LatencyChart | None:  # noqa: ARG002
        """Return a source's latency; None: unknown."""
        return None

    @property
    def address(self) -> str:
        """The address of this section alone."""
        return reverse("overview_section", args=[self.name])

    @cached_property
    def amounts(self) -> list[Amount]:
        """The consumption of every principal."""
        return self._amounts() if self.is_attributed else []

    @cached_property
    def total(self) -> float:
        """The consumption of all principals."""
        return sum(amount.total for amount in self.amounts)

    @cached_property
    def latest_total(self) -> float:
        """The latest rate of all principals."""
        return sum(self._latest_rate(amount) for amount in self.amounts)

    @cached_property
    def _names(self) -> dict[PrincipalKey, Name]:
        """Names of the visible principals, as far as the table and charts need them."""
        ranked = sorted(self.amounts, key=lambda amount: -self._weight(amount))
        return named([amount.principal for amount in ranked], self._user, self.query.by)

    def _weight(self, amount: Amount) -> float:
        return self._largest_share(self._latest_rate(amount), amount.total)

    def _largest_share(self, latest: float, total: float) -> float:
        """Return the larger of two shares: of the latest rates, and of the range."""
        return max(
            latest / self.latest_total if self.latest_total else 0.0,
            total / self.total if self.total else 0.0,
        )

    @cached_property
    def consumers(self) -> list[Consumer]:
        """All visible principals, grouped by name, largest consumption in the range first."""
        groups: dict[Name, list[Amount]] = defaultdict(list)
        for amount in self.amounts:
            if name := self._names.get(amount.principal):
                groups[name].append(amount)
        consumers = [
            self._consumer(replace(name, text=kind_of(name.text)), amounts)
            for name, amounts in groups.items()
        ]
        return sorted(consumers, key=lambda row: (-row.total, row.name))

    def _consumer(self, name: Name, amounts: list[Amount]) -> Consumer:
        """Return the sum of some amounts; its share is set later, as it depends on the bins."""
        total = sum(amount.total for amount in amounts)
        return Consumer(
            name.text,
            name.address,
            frozenset(amount.principal for amount in amounts),
            name.nodes,
            total,
            None,
            sum(map(self._latest_rate, amounts)),
            total / self.attributed_s if self.attributed_s else None,
            name.user,
        )

    @cached_property
    def layers(self) -> list[Consumer]:
        """The named layers of the charts: busiest now, or in the whole range."""

        def rank(row: Consumer) -> tuple[float, str]:
            return -self._largest_share(row.latest or 0, row.total), row.name

        return sorted(self.consumers, key=rank)[:_LAYERS]

    @cached_property
    def _own_rest(self) -> frozenset[PrincipalKey]:
        """Visible principals without a layer; they stay apart from other users' jobs."""
        if self._user.is_staff:
            return frozenset()
        return frozenset(self._names).difference(*(layer.principals for layer in self.layers))

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the charts' layers."""
        own_rest = [_OWN_REST] if self._own_rest else []
        return (*(layer.name for layer in self.layers), *own_rest, palette.ALL_OTHERS)

    @cached_property
    def colours(self) -> dict[str, str]:
        """The colour token of each layer, the same in all charts and in the table."""
        return palette.principals(list(self.kinds))

    @cached_property
    def _binned(self) -> list[Bin]:
        if not self.is_attributed:
            return []
        own_rest = [self._own_rest] if self._own_rest else []
        return top_consumers.bins(
            self._rows(self.level),
            self._rows(self.total_level),
            [*(layer.principals for layer in self.layers), *own_rest],
            self.bin,
            self._bins.start,
            hide_within=None if self._user.is_staff else self.coarser_bin,
        )

    def _visible_bins(self, source: int) -> list[Bin]:
        """Return one source's visible bins; other users' jobs as rounded sums that hide owners."""
        bins = [each for each in self._binned if each.source == source]
        if self._user.is_staff:
            return bins
        return [
            each if each.layer else each.rounded()
            for each in bins
            if each.layer or not each.is_hidden
        ]

    @cached_property
    def _other_bins(self) -> list[Bin]:
        """The visible sums of all that has no layer."""
        return [
            each for source in self.sources for each in self._visible_bins(source) if not each.layer
        ]

    @property
    def shows_others(self) -> bool:
        """Whether other users' jobs are visible, at least as a sum."""
        return self._user.is_staff or bool(self._other_bins)

    @property
    def hides_others(self) -> bool:
        """Whether other users' jobs are hidden in some steps."""
        if self._user.is_staff:
            return False
        return not self._other_bins or any(each.is_hidden for each in self._binned)

    @cached_property
    def _visible_total(self) -> float:
        """The whole that shares refer to; 0: other users' jobs are too few to be visible."""
        if self._user.is_staff:
            return self.total
        if not self._other_bins:
            return 0.0
        own = sum(amount.total for amount in self.amounts if amount.principal in self._names)
        return own + sum(each.amount for each in self._other_bins)

    def _with_share(self, row: Consumer) -> Consumer:
        return replace(row, share=row.total / self._visible_total if self._visible_total else None)

    @cached_property
    def listed(self) -> list[Consumer]:
        """The first consumers and all layers, so that a storm that ended stays in the table."""
        return [
            self._with_share(row)
            for rank, row in enumerate(self.consumers)
            if rank < _TABLE_ROWS or row in self.layers
        ]

    @cached_property
    def others(self) -> Consumer | None:
        """The sum over unlisted principals; None: there are none, or they are not visible."""
        if self._user.is_staff:
            listed = frozenset().union(*(row.principals for row in self.listed))
            rest = [amount for amount in self.amounts if amount.principal not in listed]
            return (
                self._with_share(self._consumer(Name(palette.ALL_OTHERS), rest)) if rest else None
            )
        if not self._other_bins:
            return None
        total = sum(each.amount for each in self._other_bins)
        mean = total / self.attributed_s if self.attributed_s else None
        others = Consumer(palette.ALL_OTHERS, "", frozenset(), 0, total, None, None, mean)
        return self._with_share(others)

    @cached_property
    def table(self) -> list[tuple[Consumer, str, Flag | None, Contact | None]]:
        """The rows of the table with colour in the charts, worst flag, and then the contact."""
        rows = [*self.listed, *([self.others] if self.others else [])]
        principals = [principal for row in self.listed for principal in row.principals]
        by_principal = worst_by_principal(principals, self._user)
        flags = [row.worst_flag(by_principal) for row in rows]
        flagged = (row.user for row, flag in zip(rows, flags, strict=True) if flag)
        known = contacts(flagged, self._user)
        return [
            (row, self.colours.get(row.name, palette.REST), flag, known.get(row.user))
            for row, flag in zip(rows, flags, strict=True)
        ]

    def steps(self, source: int) -> Steps:
        """Return a source's rates by layer; null where other users' jobs are not visible."""
        steps = self._steps(source, self._windows(source), (*self.kinds, OTHERS_VISIBLE))
        is_visible = pl.lit(self._user.is_staff) | (pl.col(OTHERS_VISIBLE) > 0)
        others = pl.when(is_visible).then(pl.col(palette.ALL_OTHERS))
        frame = steps.frame.with_columns(others.alias(palette.ALL_OTHERS)).drop(OTHERS_VISIBLE)
        return replace(steps, frame=frame, kinds=self.kinds)

    def _steps(self, source: int, windows: pl.DataFrame, kinds: Sequence[str]) -> Steps:
        attributed = self.attributed.filter(pl.col("source") == source)
        steps = rates(windows, attributed, kinds, 1)
        pending = tuple(self.pending.get(source, ()))
        return within(replace(steps, pending=pending), self.window.start, self.window.end)

    def _pivoted(self, source: int) -> pl.DataFrame:
        """Return a source's visible bins as windows with a column per layer."""
        layers = dict(enumerate((palette.ALL_OTHERS, *self.kinds[:-1])))
        frame = pl.DataFrame(
            [
                (each.source, each.start, each.end, layers[each.layer], each.amount)
                for each in self._visible_bins(source)
            ],
            schema={**OBSERVED, "layer": pl.String, "amount": pl.Float64},
            orient="row",
        )
        # Summed before: a pivot's sum of nothing is 0, and hidden amounts are not 0.
        index = ["source", "start", "end"]
        summed = frame.group_by(*index, "layer", maintain_order=True).agg(pl.sum("amount"))
        pivoted = summed.pivot("layer", index=index, values="amount")
        missing = [
            pl.lit(None, pl.Float64).alias(kind)
            for kind in self.kinds
            if kind not in pivoted.columns
        ]
        is_visible = pl.col(palette.ALL_OTHERS).is_not_null().cast(pl.Float64)
        return (
            pivoted.with_columns(seconds("start", "end").alias("seconds"), *missing)
            .with_columns(is_visible.alias(OTHERS_VISIBLE))
            .with_columns(pl.col(list(self.kinds)).fill_null(0.0))
        )

    @cached_property
    def charts(self) -> list[SourceChart]:
        """A chart for each of the busiest sources."""
        amounts: dict[int, float] = defaultdict(float)
        for each in self._binned:
            amounts[each.source] += each.amount
        sources = [(source, self.sources[source]) for source in self.observed_sources]
        sources.sort(key=lambda item: (-amounts[item[0]], item[1]))
        chart = replace(self.chart, colours=lambda names: {n: self.colours[n] for n in names})
        links = {layer.name: layer.address for layer in self.layers if layer.address}
        return [
            SourceChart(
                source,
                name,
                f"figure-{self.name}-{source}",
                chart,
                self.steps(source),
                self.window.axis,
                self.marks,
                links,
                self.latency(source),
            )
            for source, name in sources[:_MAX_CHARTS]
        ]

    @property
    def more_sources(self) -> int:
        """Number of observed sources without a chart."""
        return max(0, len(self.observed_sources) - _MAX_CHARTS)

    @property
    def about(self) -> dict[str, object]:
        """The JSON export's members next to its rows: the range, and the table."""
        return {
            "start": self.window.start,
            "end": self.window.end,
            "unit": self.unit,
            "bin_s": self.bin_s,
            "observed_s": self.observed_s,
            "attributed_s": self.attributed_s,
            "pending_s": self.pending_s,
            "simulated": query.is_simulated(),
            "top": [
                {
                    "principal": row.name,
                    "nodes": row.nodes or None,
                    "latest_per_second": row.latest,
                    "latest_per_second_and_node": row.latest_per_node,
                    "mean_per_second": row.mean,
                    "share": row.share,
                }
                for row in self.listed
            ],
        }

    def export_rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rates of all charts as rows of `EXPORT_COLUMNS`.

        A rate is None while attribution is pending, and where other users' jobs are too few.
        """
        for chart in self.charts:
            steps = chart.steps
            for start, end, *values in sorted(self._intervals(steps), key=itemgetter(0)):
                for kind, value in zip(steps.kinds, values, strict=True):
                    yield chart.name, start, end, kind, value

    def _intervals(self, steps: Steps) -> Iterable[tuple[Any, ...]]:
        """Yield start, end and rates of the attributed intervals, then of the pending ones."""
        yield from steps.frame.select("start", "end", *steps.kinds).iter_rows()
        for gap in steps.gaps(self.window.start, self.window.end):
            if gap.known is Known.PENDING:
                yield gap.start, gap.end, *(None for _ in steps.kinds)
