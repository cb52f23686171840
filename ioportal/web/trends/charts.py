"""Charts of the trends page, for batch jobs and for PanDA jobs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from ioportal.core.charts.timelines import Chart, Style
from ioportal.core.units import Unit
from ioportal.jobs import trends as questions
from ioportal.jobs.analysis import trends
from ioportal.jobs.populations.selections import BATCH_JOBS, PANDA_JOBS
from ioportal.jobs.trends import BATCH_RECORDS, PANDA_RECORDS, RECORDED
from ioportal.metrics import METRICS, PANDA_METRICS

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ioportal.jobs.analysis.trends import Buckets
    from ioportal.jobs.trends import Records
    from ioportal.metrics import Metric

_MEAN_AND_PEAK = "Mean and maximum in each interval."
_HOURS = "{things} of each {unit}, times the hours of its run in each interval."


@dataclass(frozen=True)
class Figures:
    """Aggregates of jobs by bucket, a row each; every query runs once."""

    jobs: Any
    records: Records
    buckets: Buckets

    @cached_property
    def outcomes(self) -> pl.DataFrame:
        """Ended jobs by outcome."""
        rows = questions.outcomes(self.jobs, self.records, self.buckets)
        return trends.table(rows, self.records.ended, len(self.buckets), 0)

    @cached_property
    def use(self) -> pl.DataFrame:
        """Jobs, nodes and cores in use."""
        rows = questions.use(self.jobs, self.records, self.buckets)
        return trends.table(rows, questions.USE, len(self.buckets), 0)

    @property
    def failed_share(self) -> pl.DataFrame:
        """The share of failed jobs among finished and failed PanDA jobs, and their number."""
        ended = pl.col("finished") + pl.col("failed")
        share = pl.when(ended > 0).then(pl.col("failed") / ended)
        return self.outcomes.select(n=ended, failed_share=share)

    def spread(self, metric: Metric) -> pl.DataFrame:
        """Quantiles of a metric by start of the jobs."""
        rows = questions.spread(self.jobs, self.records, metric, self.buckets)
        return trends.table(rows, questions.SPREAD, len(self.buckets), None)


@dataclass(frozen=True)
class Kind:
    """A chart of jobs and their use of nodes and cores, not of a metric."""

    chart: Chart
    frame: Callable[[Figures], pl.DataFrame]
    unit: Unit | None = None  # None: a count that is not a metric


def _of_use(*names: str) -> Callable[[Figures], pl.DataFrame]:
    return lambda figures: figures.use.select(names)


def _ended(labels: dict[str, str], plural: str, source: str) -> Kind:
    chart = Chart(
        "jobs-ended",
        f"Ended {plural}",
        "jobs",
        f"By outcome, according to {source}.",
        Style.STACK,
        labels,
    )
    return Kind(chart, lambda figures: figures.outcomes)


def _core_hours(unit: str) -> Kind:
    chart = Chart(
        "core-hours",
        "Core-hours",
        "core-hours",
        _HOURS.format(things="Cores", unit=unit),
        Style.STACK,
        {"core_hours": "core-hours"},
    )
    return Kind(chart, _of_use("core_hours"))


def _running(plural: str) -> Kind:
    chart = Chart(
        "running-jobs",
        f"Running {plural}",
        "jobs",
        _MEAN_AND_PEAK,
        Style.LINES,
        {"jobs_mean": "mean", "jobs_peak": "peak"},
    )
    return Kind(chart, _of_use("jobs_mean", "jobs_peak"))


_BATCH_KINDS = (
    _ended(
        {
            "completed": "completed",
            "failed": "failed",
            "timeout": "timed out",
            "cancelled": "cancelled or preempted",
            "other": "other",
        },
        "jobs",
        "accounting",
    ),
    Kind(
        Chart(
            "node-hours",
            "Node-hours",
            "node-hours",
            _HOURS.format(things="Nodes", unit="allocation"),
            Style.STACK,
            {"node_hours": "node-hours"},
        ),
        _of_use("node_hours"),
    ),
    _core_hours("allocation"),
    _running("jobs"),
    Kind(
        Chart(
            "nodes-in-use",
            "Nodes in use",
            "nodes",
            f"{_MEAN_AND_PEAK} Shared nodes count for each job.",
            Style.LINES,
            {"nodes_mean": "mean", "nodes_peak": "peak"},
        ),
        _of_use("nodes_mean", "nodes_peak"),
    ),
)
_PANDA_KINDS = (
    _ended(
        {
            "finished": "finished",
            "failed": "failed",
            "cancelled": "cancelled or closed",
            "other": "other",
        },
        "PanDA jobs",
        "PanDA",
    ),
    Kind(
        Chart(
            "failed-share",
            "Failed share",
            str(Unit.SHARE),
            "Failed among finished and failed PanDA jobs in each interval.",
            Style.LINES,
            {"failed_share": "failed"},
        ),
        lambda figures: figures.failed_share,
        Unit.SHARE,
    ),
    _core_hours("PanDA job"),
    _running("PanDA jobs"),
)


@dataclass(frozen=True)
class Offered:
    """Available charts for batch jobs or PanDA jobs."""

    kinds: tuple[Kind, ...]
    metrics: tuple[Metric, ...]
    first_metrics: tuple[str, ...]  # the default
    records: Records

    @property
    def kinds_by_name(self) -> dict[str, Kind]:
        """Charts that are not of a metric."""
        return {kind.chart.name: kind for kind in self.kinds}

    @property
    def metrics_by_name(self) -> dict[str, Metric]:
        """Metrics by name."""
        return {metric.name: metric for metric in self.metrics}

    @property
    def names(self) -> set[str]:
        """The names of all charts in URLs."""
        return self.kinds_by_name.keys() | self.metrics_by_name.keys()


OFFERED = {
    BATCH_JOBS.name: Offered(
        _BATCH_KINDS, METRICS, ("metadata_operations", "duration_s"), BATCH_RECORDS
    ),
    # PanDA's own metrics; shared values belong to batch jobs.
    PANDA_JOBS.name: Offered(
        _PANDA_KINDS, PANDA_METRICS, ("panda_duration_s", "panda_setup_s"), PANDA_RECORDS
    ),
}


def chart_of(metric: Metric) -> Chart:
    """Return the chart of a metric."""
    exception = "" if metric.source in RECORDED else ", without poor data"
    return Chart(
        metric.name,
        metric.title,
        str(metric.unit),
        f"Formula: {metric.formula} ({metric.source}). All jobs started in each "
        f"interval{exception}.",
        Style.LINES,
        {"median": "median", "p90": "p90"},
    )
