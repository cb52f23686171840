"""The histograms of a population page."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from django.http import QueryDict
from django.urls import reverse

from ioportal.core import formatting
from ioportal.core.units import Unit
from ioportal.jobs.analysis.spread import Spread
from ioportal.jobs.charts import histograms as charts
from ioportal.web.common import job_kinds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ioportal.jobs.analysis.histograms import Bin, Histogram, Scale
    from ioportal.jobs.populations.population_tables import Table
    from ioportal.jobs.populations.selections import JobKind
    from ioportal.metrics import Metric


_LEGEND_CHARACTERS = 60


class HistogramPart:
    """The histogram of one metric, with table and export."""

    def __init__(
        self,
        metric: Metric,
        histogram: Histogram,
        tables: Sequence[Table],
        kind: JobKind,
        scale: Scale,
        *,
        as_shares: bool,
        address: str,
    ) -> None:
        """Describe a histogram.

        Args:
            metric: the values.
            histogram: counts by bin.
            tables: the populations.
            kind: of the jobs.
            scale: of the bins.
            as_shares: whether bars are shares of a population.
            address: the query of the page.
        """
        self.metric = metric
        self.histogram = histogram
        self.kind = kind
        self._tables = tables
        self._scale = scale
        self._as_shares = as_shares
        self._address = address

    @property
    def script_id(self) -> str:
        """The id of the element with the figure."""
        return f"figure-{self.metric.name}"

    @property
    def exports_url(self) -> str:
        """The URL of the export, without the format."""
        return f"{reverse('histogram', args=[self.metric.name])}?{self._address}"

    @property
    def is_empty(self) -> bool:
        """Whether the metric is unknown for all jobs."""
        return not self.histogram.bins

    @property
    def figure(self) -> charts.Figure:
        """The chart for Plotly."""
        tick = self._label if self.metric.unit is Unit.BYTES else formatting.short
        chart = charts.Chart(
            self.metric.title,
            self.each,
            self._label,
            tick,
            self._scale,
            self._as_shares,
            self.kind.plural,
        )
        links = self._links[0] if self._links else []
        return charts.figure(chart, self.histogram.bins, self._bars, links)

    @property
    def is_shared(self) -> bool:
        """Whether its values are of batch jobs, possibly shared."""
        return not self.kind.is_own(self.metric.name)

    @property
    def each(self) -> str:
        """The unit of a value: 'operations per batch job'."""
        unit = "seconds" if self.metric.unit is Unit.SECONDS else str(self.metric.unit)
        return f"{unit} per {'batch job' if self.is_shared else self.kind.singular}"

    @property
    def titles(self) -> list[str]:
        """Titles of the populations."""
        return [table.population.title for table in self._tables]

    @property
    def value_counts(self) -> list[tuple[str, int, int]]:
        """Title, known and unknown values of each population."""
        return [
            (table.population.title, spread.n, spread.unknown)
            for table in self._tables
            if (spread := table.summary.spreads.get(self.metric.name))
        ]

    @property
    def rows(self) -> Iterator[tuple[str, list[tuple[int | None, float, str]]]]:
        """Yield non-empty bins: bounds; count, share and link of each population."""
        for (bounds, counts), links in zip(
            self._by_bin(), zip(*self._links, strict=True), strict=True
        ):
            if any(counts):
                yield (
                    charts.bounds_in_words(self._label, bounds),
                    [
                        (count, bars.share(count or 0), link)
                        for bars, count, link in zip(self._bars, counts, links, strict=True)
                    ],
                )

    @property
    def header(self) -> list[str]:
        """Column names of the export."""
        compared = ["compared_count", "compared_share"] if len(self._tables) > 1 else []
        return ["from", "below", "count", "share", *compared]

    @property
    def values(self) -> Iterator[list[Any]]:
        """Yield the rows of the export: all bins."""
        for (low, high), counts in self._by_bin():
            row: list[Any] = [low, high]
            for bars, count in zip(self._bars, counts, strict=True):
                row += [count, None if count is None else bars.share(count)]
            yield row

    @cached_property
    def _bars(self) -> list[charts.Bars]:
        return [
            charts.Bars(name, self._spread(table).n, counts)
            for name, table, counts in zip(
                _legend(self.titles), self._tables, self.histogram.counts, strict=True
            )
        ]

    def _spread(self, table: Table) -> Spread:
        return table.summary.spreads.get(self.metric.name, Spread(0, 0))

    def _by_bin(self) -> Iterator[tuple[Bin, tuple[int | None, ...]]]:
        yield from zip(self.histogram.bins, zip(*self.histogram.counts, strict=True), strict=True)

    def _label(self, value: int) -> str:
        if self.metric.unit is Unit.BYTES:
            return formatting.all_bytes(value)
        return f"{value:,} s" if self.metric.unit is Unit.SECONDS else f"{value:,}"

    @cached_property
    def _links(self) -> list[list[str]]:
        """The URLs of the jobs in each bin, for each population."""
        return [self._jobs_urls(table.population.jobs_url) for table in self._tables]

    def _jobs_urls(self, jobs_url: str) -> list[str]:
        """Return the URL of the jobs in each bin, within the bounds of the filters."""
        if not jobs_url:
            return [""] * len(self.histogram.bins)
        filters = dict(QueryDict(urlsplit(jobs_url).query).lists())
        names = self.kind.bounds[self.metric.name]
        selected = [list(map(int, filters.get(name, [])[-1:])) for name in names]
        urls = []
        for low, high in self.histogram.bins:
            within = (max([low, *selected[0]]), min([high, *selected[1]]))
            query = urlencode(filters | dict(zip(names, within, strict=True)), doseq=True)
            urls.append(job_kinds.list_url(self.kind, query))
        return urls


def _legend(titles: list[str]) -> list[str]:
    """Return short names of populations: their numbers, and the filters in which they differ."""
    if len(titles) == 1:
        return titles
    filters = [title.split("; ") for title in titles]
    names = []
    for number, own in enumerate(filters):
        others = {part for other in filters if other is not own for part in other}
        differing = [part for part in own if part not in others] or own
        name = "; ".join(differing)
        cut = name if len(name) <= _LEGEND_CHARACTERS else f"{name[: _LEGEND_CHARACTERS - 1]}…"
        names.append(f"{number + 1}: {cut}")
    return names
