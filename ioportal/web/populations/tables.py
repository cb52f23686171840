"""The statistics of populations, a metric in each column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ioportal.analysis.metrics import BY_NAME, METRICS, PANDA_METRICS, Metric, Source, Unit
from ioportal.analysis.populations import FEWEST
from ioportal.reporting import formatting
from ioportal.studies.populations import BATCH_JOBS, PANDA_JOBS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ioportal.studies.populations import Counted, Summary
    from ioportal.web.populations.descriptions import Shown

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
_BATCH_LEVEL = "Its batch job, shared"
TABLE_HEADER = ["population", "filters", "metric", "value_of", "unit", *_STATISTICS]
_GB = 10**9


@dataclass(frozen=True)
class Column:
    """A metric of the table, and how its values are written there."""

    metric: Metric
    title: str
    write: Callable[[float], str]


def _plain(decimals: int, divisor: int = 1) -> Callable[[float], str]:
    """Write numbers with their thousands apart; whole ones need no decimals if 0 are asked for."""

    def write(value: float) -> str:
        scaled = value / divisor
        is_whole = not decimals and scaled == round(scaled)
        return f"{scaled:,.{0 if is_whole else decimals or 2}f}"

    return write


def _human(unit: Unit) -> Callable[[float], str]:
    if unit in {Unit.COUNT, Unit.RPCS}:
        return _plain(0)
    return lambda value: formatting.human(value, unit)


# The table of the 1,175 PanDA jobs of a week on Titan had these columns.
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
FURTHER = tuple(
    Column(metric, metric.title, _human(metric.unit))
    for metric in METRICS
    if metric not in {column.metric for column in COLUMNS}
)
_WRITTEN = {Unit.SECONDS: _plain(0), Unit.CORES: _plain(0), Unit.SHARE: _human(Unit.SHARE)}
_TITLES = {Unit.SECONDS: " (s)"}
PANDA_COLUMNS = tuple(
    Column(metric, metric.title + _TITLES.get(metric.unit, ""), _WRITTEN[metric.unit])
    for metric in PANDA_METRICS
)


@dataclass(frozen=True)
class Layout:
    """How populations of a unit are shown: the columns of both tables."""

    columns: tuple[Column, ...]
    further: tuple[Column, ...]

    @property
    def by_metric(self) -> dict[str, Column]:
        """The columns of the first table by their metrics' names."""
        return {column.metric.name: column for column in self.columns}


LAYOUTS = {
    BATCH_JOBS.name: Layout(COLUMNS, FURTHER),
    PANDA_JOBS.name: Layout((*PANDA_COLUMNS, *COLUMNS), FURTHER),
}


@dataclass(frozen=True)
class Table:
    """The statistics of one population."""

    shown: Shown
    summary: Summary
    columns: tuple[Column, ...]
    colour: int  # of its bars, and of the mark beside its name
    fewest = FEWEST

    @property
    def rows(self) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """Yield each statistic's name and cells: what is written and, for a title, exactly."""
        if not self.summary.spreads:
            return
        for name, title in _STATISTICS.items():
            yield title, [self._cell(column, name) for column in self.columns]

    @property
    def counted(self) -> Counted:
        """What is counted."""
        return self.shown.selection.counted

    @property
    def groups(self) -> list[tuple[str, int, bool]]:
        """Whose values stand in how many columns, where some are batch jobs': with that."""
        own = [self.counted.is_own(column.metric.name) for column in self.columns]
        if all(own):
            return []
        parts = [
            (self.counted.singular, own.count(True), False),
            (_BATCH_LEVEL, own.count(False), True),
        ]
        return [part for part in parts if part[1]]

    def _cell(self, column: Column, name: str) -> tuple[str, str]:
        spread = self.summary.spreads.get(column.metric.name)
        value = getattr(spread, name, None)
        if value is not None and name in {"n", "unknown"}:
            return f"{value:,}", f"{value:,} {self.counted.plural}"
        if value is None:
            told = "not told of other people's jobs" if self.is_anonymous else "not known"
            return formatting.UNKNOWN, told
        return column.write(value), formatting.exact(value, column.metric.unit)

    @property
    def is_anonymous(self) -> bool:
        """Whether these are other people's jobs."""
        return self.shown.selection.is_anonymous

    @property
    def values(self) -> Iterator[list[Any]]:
        """Yield the rows of the twins: a metric each, in its own unit."""
        for column in self.columns:
            found = self.summary.spreads.get(column.metric.name)
            figures = [getattr(found, name, None) for name in _STATISTICS]
            yield [
                self.shown.title,
                self.shown.words,
                column.metric.name,
                value_of(column.metric),
                str(column.metric.unit),
                *figures,
            ]


def value_of(metric: Metric) -> str:
    """Return whose value a metric is, for twins."""
    return "PanDA job" if metric.source is Source.PANDA else "batch job"
