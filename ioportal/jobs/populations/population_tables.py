"""Statistics of populations as tables, a metric per column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ioportal.core import formatting
from ioportal.core.units import Source, Unit
from ioportal.jobs.analysis.anonymity import MIN_GROUP
from ioportal.jobs.populations.selections import BATCH_JOBS, PANDA_JOBS
from ioportal.metrics import BY_NAME, METRICS, PANDA_METRICS, Metric

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ioportal.jobs.populations.selections import JobKind, Selection, Summary

_STATISTICS = {
    "n": "Known",
    "unknown": "Unknown",
    "min": "Min",
    "max": "Max",
    "mean": "Average",
    "std": "Std. Dev.",
    "p50": "p50",
    "p90": "p90",
    "p99": "p99",
}
_BATCH_LEVEL = "Batch job (shared)"
TABLE_HEADER = ["population", "filters", "metric", "value_of", "unit", *_STATISTICS]
_GB = 10**9


@dataclass(frozen=True)
class Column:
    """A metric of the table, and the format of its values."""

    metric: Metric
    title: str
    write: Callable[[float], str]


def _plain(decimals: int, divisor: int = 1) -> Callable[[float], str]:
    """Format numbers with thousands separators; with 0 decimals, fractions still get two."""

    def write(value: float) -> str:
        scaled = value / divisor
        is_whole = not decimals and scaled == round(scaled)
        return f"{scaled:,.{0 if is_whole else decimals or 2}f}"

    return write


def _human(unit: Unit) -> Callable[[float], str]:
    if unit in {Unit.COUNT, Unit.RPCS}:
        return _plain(0)
    return lambda value: formatting.human(value, unit)


# The columns of the table of 1,175 PanDA jobs in a week on Titan.
COLUMNS = (
    Column(BY_NAME["node_count"], "Num. Nodes", _plain(0)),
    Column(BY_NAME["duration_s"], "Duration (s)", _plain(0)),
    Column(BY_NAME["read_bytes"], "Read (GB)", _plain(2, _GB)),
    Column(BY_NAME["write_bytes"], "Written (GB)", _plain(2, _GB)),
    Column(BY_NAME["read_bytes_per_node"], "GB Read/nodes", _plain(5, _GB)),
    Column(BY_NAME["write_bytes_per_node"], "GB Written/nodes", _plain(5, _GB)),
    Column(BY_NAME["opens"], "open()", _plain(0)),
    Column(BY_NAME["closes"], "close()", _plain(0)),
)
OTHER_COLUMNS = tuple(
    Column(metric, metric.title, _human(metric.unit))
    for metric in METRICS
    if metric not in {column.metric for column in COLUMNS}
)
_WRITTEN = {
    Unit.SECONDS: _plain(0),
    Unit.CORES: _plain(0),
    Unit.EVENTS: _plain(0),
    Unit.BYTES: _plain(2, _GB),
    Unit.SHARE: _human(Unit.SHARE),
}
_TITLES = {Unit.SECONDS: " (s)", Unit.BYTES: " (GB)"}
_OTHER_PANDA = {
    *("panda_get_job_s", "panda_payload_s", "panda_events"),
    *("panda_max_pss_bytes", "panda_max_swap_bytes"),
}


def _panda_column(metric: Metric) -> Column:
    return Column(metric, metric.title + _TITLES.get(metric.unit, ""), _WRITTEN[metric.unit])


PANDA_COLUMNS = tuple(
    _panda_column(metric) for metric in PANDA_METRICS if metric.name not in _OTHER_PANDA
)
OTHER_PANDA_COLUMNS = tuple(
    _panda_column(metric) for metric in PANDA_METRICS if metric.name in _OTHER_PANDA
)


@dataclass(frozen=True)
class Layout:
    """Columns of the tables of a unit."""

    columns: tuple[Column, ...]
    other: tuple[Column, ...]

    @property
    def by_metric(self) -> dict[str, Column]:
        """All columns by metric name."""
        return {column.metric.name: column for column in (*self.columns, *self.other)}


LAYOUTS = {
    BATCH_JOBS.name: Layout(COLUMNS, OTHER_COLUMNS),
    PANDA_JOBS.name: Layout((*PANDA_COLUMNS, *COLUMNS), (*OTHER_PANDA_COLUMNS, *OTHER_COLUMNS)),
}


@dataclass(frozen=True)
class DescribedPopulation:
    """A population with its title and filters as text."""

    title: str
    filters: str
    selection: Selection
    jobs_url: str  # "" for anonymous jobs


@dataclass(frozen=True)
class Table:
    """The statistics of one population."""

    population: DescribedPopulation
    summary: Summary
    columns: tuple[Column, ...]
    colour: int  # index of its bars and its key
    fewest = MIN_GROUP

    @property
    def rows(self) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """Yield the name and cells of each statistic: text, and exact value as title."""
        if not self.summary.spreads:
            return
        for name, title in _STATISTICS.items():
            yield title, [self._cell(column, name) for column in self.columns]

    @property
    def kind(self) -> JobKind:
        """Batch jobs or PanDA jobs."""
        return self.population.selection.kind

    @property
    def groups(self) -> list[tuple[str, int, bool]]:
        """Column groups if some values are of batch jobs: title, width, whether shared."""
        own = [self.kind.is_own(column.metric.name) for column in self.columns]
        if all(own):
            return []
        parts = [
            (self.kind.singular, own.count(True), False),
            (_BATCH_LEVEL, own.count(False), True),
        ]
        return [part for part in parts if part[1]]

    def _cell(self, column: Column, name: str) -> tuple[str, str]:
        spread = self.summary.spreads.get(column.metric.name)
        value = getattr(spread, name, None)
        if value is not None and name in {"n", "unknown"}:
            return f"{value:,}", f"{value:,} {self.kind.plural}"
        if value is None:
            reason = "hidden for other users' jobs" if self.is_anonymous else "unknown"
            return formatting.UNKNOWN, reason
        return column.write(value), formatting.exact(value, column.metric.unit)

    @property
    def is_anonymous(self) -> bool:
        """Whether these are other users' jobs."""
        return self.population.selection.is_anonymous

    @property
    def values(self) -> Iterator[list[Any]]:
        """Yield the rows of the export: one per metric, in its unit."""
        for column in self.columns:
            spread = self.summary.spreads.get(column.metric.name)
            figures = [getattr(spread, name, None) for name in _STATISTICS]
            yield [
                self.population.title,
                self.population.filters,
                column.metric.name,
                value_of(column.metric),
                str(column.metric.unit),
                *figures,
            ]


def value_of(metric: Metric) -> str:
    """Return the owner of a metric's values, for exports."""
    return "PanDA job" if metric.source is Source.PANDA else "batch job"
