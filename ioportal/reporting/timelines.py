"""The timelines of the job page: which series each shows, and how its twins are laid out."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from collectors.tables import BYTES, METADATA_OPERATIONS
from ioportal.charts import timelines as charts
from ioportal.charts.timelines import Chart, Style
from ioportal.reporting.formatting import decimal_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ioportal.analysis.timelines import Steps
    from ioportal.charts.time_axis import Figure, Mark
    from ioportal.reporting.ranges import TimeRange
    from ioportal.reporting.series import JobSeries

ROWS_SHOWN = 100  # of a chart's table on the page; its twins have all


@dataclass(frozen=True)
class Kind:
    """A timeline of every job: its chart and the series it draws."""

    chart: Chart
    steps: Callable[[JobSeries], Steps]
    marks: Callable[[JobSeries], list[Mark]]
    counts: tuple[str, ...] = ()  # of job_stats: what a first read may hold without a time


def _metadata_marks(series: JobSeries) -> list[Mark]:
    return [*series.run_marks, *series.version_marks, *series.reset_marks(on_mdts=True)]


def _data_marks(series: JobSeries) -> list[Mark]:
    return [*series.run_marks, *series.reset_marks(on_mdts=False)]


def _rpc_marks(series: JobSeries) -> list[Mark]:
    return series.run_marks


_FROM_MDTS = "Counted by the MDTs for the job id (job_stats)"
KINDS = (
    Kind(
        Chart(
            "opens-closes",
            "Opens and closes",
            "ops/s",
            f"{_FROM_MDTS}. What open counts depends on the server's version.",
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
            f"{_FROM_MDTS}, stacked. These are not RPCs: one look-up may need several, or none.",
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
            "Requests counted by the OSTs, and by MDTs that hold small files (job_stats).",
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
            "Bytes counted by the OSTs, and by MDTs that hold small files (job_stats).",
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
            "Handled by the metadata servers for the job (rpctrace), stacked; per traced second.",
            Style.STACK,
            {},
        ),
        lambda series: series.rpcs,
        _rpc_marks,
    ),
    Kind(
        Chart(
            "rpc-times",
            "Service and queue time of metadata RPCs",
            "µs",
            "Means of the timed RPCs: in the handler, and waiting for it (rpctrace).",
            Style.LINES,
            {"service": "mean service time", "queue": "mean queue time"},
        ),
        lambda series: series.rpc_times,
        _rpc_marks,
    ),
)
BY_NAME = {kind.chart.name: kind for kind in KINDS}


class StepsChart:
    """A chart of rates or means in a range, its table and its twins."""

    def __init__(
        self, chart: Chart, steps: Steps, marks: Callable[[], Sequence[Mark]], window: TimeRange
    ) -> None:
        self.chart = chart
        self.steps = steps
        self._marks = marks
        self._window = window

    @property
    def figure(self) -> Figure:
        """The chart for Plotly."""
        return charts.figure(self.chart, self.steps, self._window.axis, self._marks())

    @property
    def script_id(self) -> str:
        """The id of the element that carries the figure."""
        return f"figure-{self.chart.name}"

    @property
    def is_empty(self) -> bool:
        """Whether nothing at all is known."""
        return self.steps.frame.is_empty()

    @property
    def kinds(self) -> list[str]:
        """The columns of its table: on a stack those that happened, most frequent first."""
        if self.chart.style is Style.STACK:
            return charts.shown_kinds(self.steps)
        return list(self.steps.kinds)

    @property
    def labels(self) -> list[str]:
        """The heads of its table's columns."""
        return [self.chart.labels.get(kind, kind) for kind in self.kinds]

    @property
    def header(self) -> list[str]:
        """The names of its twins' columns."""
        return ["start", "end", "observed_sources", "sources", *self.kinds]

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of its table and twins; rates are in the chart's unit."""
        columns = self.steps.frame.select("start", "end", "observed", *self.kinds)
        for start, end, observed, *values in columns.iter_rows():
            yield start, end, observed, self.steps.sources, *values

    @property
    def table(self) -> list[tuple[Any, Any, float, str, list[float | None]]]:
        """The first rows for the page: start, end, seconds, what was observed, values."""
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
        """Rows that the page's table leaves to the twins."""
        return max(0, self.steps.frame.height - ROWS_SHOWN)


class Timeline(StepsChart):
    """One timeline of one job in one range."""

    def __init__(
        self, kind: Kind, series: JobSeries, window: TimeRange, besides: Sequence[Mark] = ()
    ) -> None:
        def marks() -> list[Mark]:
            return [*kind.marks(series), *besides]

        super().__init__(kind.chart, kind.steps(series), marks, window)
        self._kind = kind
        self._series = series

    @property
    def undated(self) -> dict[str, int]:
        """Counts of unknown duration, which no rate shows."""
        counts = {kind: self._series.undated[kind] for kind in self._kind.counts}
        return {kind: count for kind, count in counts.items() if count}

    @property
    def undated_words(self) -> list[str]:
        """The same for people: '5,210 reads'."""
        return [
            f"{decimal_bytes(count) if kind in BYTES else f'{count:,}'} "
            f"{self.chart.labels.get(kind, kind)}"
            for kind, count in self.undated.items()
        ]
