"""Charts of rates over time, with tables and exports; the timelines of a job."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from collectors.tables import BYTES, METADATA_OPERATIONS
from ioportal.core.charts import timelines as charts
from ioportal.core.charts.timelines import Chart, Style
from ioportal.core.formatting import decimal_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ioportal.core.charts.time_axis import Figure, Mark
    from ioportal.core.time_ranges import TimeRange
    from ioportal.core.timelines import Gap, Steps
    from ioportal.load.job_series import JobSeries

ROWS_SHOWN = 100  # in the table of a page; exports have all


@dataclass(frozen=True)
class Kind:
    """A timeline that every job has: its chart, series and marks."""

    chart: Chart
    steps: Callable[[JobSeries], Steps]
    marks: Callable[[JobSeries], list[Mark]]
    counts: tuple[str, ...] = ()  # columns of job_stats that a first read may hold undated


def _metadata_marks(series: JobSeries) -> list[Mark]:
    return [*series.run_marks, *series.version_marks, *series.reset_marks(on_mdts=True)]


def _data_marks(series: JobSeries) -> list[Mark]:
    return [*series.run_marks, *series.reset_marks(on_mdts=False)]


def _rpc_marks(series: JobSeries) -> list[Mark]:
    return series.run_marks


_FROM_MDTS = "Counted by the MDTs by job id (job_stats)"
KINDS = (
    Kind(
        Chart(
            "opens-closes",
            "Opens and closes",
            "ops/s",
            f"{_FROM_MDTS}. The meaning of open depends on the server version.",
            Style.LINES,
            {"open": "opens", "close": "closes"},
        ),
        lambda series: series.metadata.only(("open", "close")),
        _metadata_marks,
        ("open", "close"),
    ),
    Kind(
        Chart(
            "metadata",
            "Metadata operations by kind",
            "ops/s",
            f"{_FROM_MDTS}, stacked. Not RPCs: one lookup may need several RPCs, or none.",
            Style.STACK,
            {},
        ),
        lambda series: series.metadata,
        _metadata_marks,
        METADATA_OPERATIONS,
    ),
    Kind(
        Chart(
            "requests",
            "Reads and writes",
            "requests/s",
            "Requests on OSTs, and on MDTs with small files (job_stats).",
            Style.LINES,
            {"read": "reads", "write": "writes"},
        ),
        lambda series: series.data.only(("read", "write")),
        _data_marks,
        ("read", "write"),
    ),
    Kind(
        Chart(
            "bytes",
            "Bytes read and written",
            "bytes/s",
            "Bytes on OSTs, and on MDTs with small files (job_stats).",
            Style.LINES,
            {"read_bytes": "read", "write_bytes": "written"},
        ),
        lambda series: series.data.only(("read_bytes", "write_bytes")),
        _data_marks,
        ("read_bytes", "write_bytes"),
    ),
    Kind(
        Chart(
            "rpcs",
            "Metadata RPCs by opcode",
            "RPCs/s",
            "RPCs handled by the metadata servers (rpctrace), stacked; per traced second.",
            Style.STACK,
            {},
        ),
        lambda series: series.rpcs,
        _rpc_marks,
    ),
    Kind(
        Chart(
            "rpc-times",
            "Service and queue times of metadata RPCs",
            "µs",
            "Means of timed RPCs: in the handler, and before it (rpctrace).",
            Style.LINES,
            {"service": "mean service time", "queue": "mean queue time"},
        ),
        lambda series: series.rpc_times,
        _rpc_marks,
    ),
)
BY_NAME = {kind.chart.name: kind for kind in KINDS}


class StepsChart:
    """A chart of rates or means in a time range, its table and export."""

    def __init__(
        self, chart: Chart, steps: Steps, marks: Callable[[], Sequence[Mark]], window: TimeRange
    ) -> None:
        self.chart = chart
        self.steps = steps
        self.marks = marks
        self.window = window

    @property
    def figure(self) -> Figure:
        """The chart for Plotly."""
        return charts.figure(self.chart, self.steps, self.window.axis, self.marks())

    @property
    def gaps(self) -> list[Gap]:
        """Past intervals without observations, or with partial ones."""
        return self.steps.gaps(self.window.start, self.window.axis.past_end)

    @property
    def script_id(self) -> str:
        """The id of the element with the figure."""
        return f"figure-{self.chart.name}"

    @property
    def is_empty(self) -> bool:
        """Whether nothing was observed, or all figures are unknown."""
        frame, kinds = self.steps.frame, self.steps.kinds
        return all(frame[kind].null_count() == frame.height for kind in kinds or ["start"])

    @property
    def kinds(self) -> list[str]:
        """Columns of the table; in a stack only kinds that occurred, most frequent first."""
        if self.chart.style is Style.STACK:
            return charts.nonzero_kinds(self.steps)
        return list(self.steps.kinds)

    @property
    def labels(self) -> list[str]:
        """Column headings of the table."""
        return [self.chart.labels.get(kind, kind) for kind in self.kinds]

    @property
    def header(self) -> list[str]:
        """Column names of the export."""
        return ["start", "end", "observed_sources", "sources", *self.kinds]

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of table and export; rates are in the chart's unit."""
        columns = self.steps.frame.select("start", "end", "observed", *self.kinds)
        for start, end, observed, *values in columns.iter_rows():
            yield start, end, observed, self.steps.sources, *values

    @property
    def table(self) -> list[tuple[Any, Any, float, str, list[float | None]]]:
        """The first rows for the page: start, end, seconds, observed sources, values."""
        return [
            (
                start,
                end,
                (end - start).total_seconds(),
                f"{observed} of {sources}" if observed else "mean over a gap",
                values,
            )
            for start, end, observed, sources, *values in islice(self.rows(), ROWS_SHOWN)
        ]

    @property
    def more_rows(self) -> int:
        """The number of rows that only the exports have."""
        return max(0, self.steps.frame.height - ROWS_SHOWN)


class Timeline(StepsChart):
    """A timeline of one job in a time range."""

    def __init__(
        self, kind: Kind, series: JobSeries, window: TimeRange, more_marks: Sequence[Mark] = ()
    ) -> None:
        def marks() -> list[Mark]:
            return [*kind.marks(series), *more_marks]

        super().__init__(kind.chart, kind.steps(series), marks, window)
        self._kind = kind
        self._series = series

    @property
    def undated(self) -> dict[str, int]:
        """Counts of unknown duration, which have no rate."""
        counts = {kind: self._series.undated[kind] for kind in self._kind.counts}
        return {kind: count for kind, count in counts.items() if count}

    @property
    def undated_labels(self) -> list[str]:
        """Undated counts as text: '5,210 reads'."""
        return [
            f"{decimal_bytes(count) if kind in BYTES else f'{count:,}'} "
            f"{self.chart.labels.get(kind, kind)}"
            for kind, count in self.undated.items()
        ]
