"""The charts that trends have, of batch jobs and of PanDA jobs, and where their figures are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from ioportal.analysis import trends
from ioportal.analysis.metrics import METRICS, PANDA_METRICS, Source, Unit
from ioportal.charts.timelines import Chart, Style
from ioportal.studies import trends as questions
from ioportal.studies.populations import BATCH_JOBS, PANDA_JOBS
from ioportal.studies.trends import BATCH_RECORDS, PANDA_RECORDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ioportal.analysis.metrics import Metric
    from ioportal.analysis.trends import Buckets
    from ioportal.studies.trends import Records

# Known of every job, whatever was observed of it.
RECORDED = {Source.ACCOUNTING, Source.PANDA}
_MEAN_AND_PEAK = "The mean over each bucket, and the most at any moment in it."
_HOURS = "{things} of each {held}, times the hours of its run that lie in the bucket."


@dataclass(frozen=True)
class Figures:
    """What jobs did in each bucket, a row for each: every question is asked once."""

    jobs: Any
    records: Records
    buckets: Buckets

    @cached_property
    def outcomes(self) -> pl.DataFrame:
        """How many jobs ended, and how."""
        rows = questions.outcomes(self.jobs, self.records, self.buckets)
        return trends.table(rows, self.records.ended, len(self.buckets), 0)

    @cached_property
    def use(self) -> pl.DataFrame:
        """What jobs used."""
        rows = questions.use(self.jobs, self.records, self.buckets)
        return trends.table(rows, questions.USE, len(self.buckets), 0)

    @property
    def failed_share(self) -> pl.DataFrame:
        """Failed PanDA jobs among those that finished or failed, and how many these are."""
        told = pl.col("finished") + pl.col("failed")
        share = pl.when(told > 0).then(pl.col("failed") / told)
        return self.outcomes.select(n=told, failed_share=share)

    def spread(self, metric: Metric) -> pl.DataFrame:
        """How a metric is spread among the jobs that began."""
        rows = questions.spread(self.jobs, self.records, metric, self.buckets)
        return trends.table(rows, questions.SPREAD, len(self.buckets), None)


@dataclass(frozen=True)
class Kind:
    """A chart about jobs and what they used: with every population, and of no one metric."""

    chart: Chart
    frame: Callable[[Figures], pl.DataFrame]
    unit: Unit | None = None  # None: a count of something that is no metric


def _of_use(*names: str) -> Callable[[Figures], pl.DataFrame]:
    return lambda figures: figures.use.select(names)


def _ended(labels: dict[str, str], plural: str, teller: str) -> Kind:
    chart = Chart(
        "jobs-ended",
        f"{plural} that ended",
        "jobs",
        f"By how they ended, as {teller} has it.",
        Style.STACK,
        labels,
    )
    return Kind(chart, lambda figures: figures.outcomes)


def _core_hours(held: str) -> Kind:
    chart = Chart(
        "core-hours",
        "Core-hours",
        "core-hours",
        _HOURS.format(things="Cores", held=held),
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
            "other": "otherwise",
        },
        "Jobs",
        "accounting",
    ),
    Kind(
        Chart(
            "node-hours",
            "Node-hours",
            "node-hours",
            _HOURS.format(things="Nodes", held="allocation"),
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
            f"{_MEAN_AND_PEAK} A node that several jobs share counts for each.",
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
            "other": "otherwise",
        },
        "PanDA jobs",
        "PanDA",
    ),
    Kind(
        Chart(
            "failed-share",
            "Failed share",
            str(Unit.SHARE),
            "Failed PanDA jobs among those that finished or failed in each bucket.",
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
    """What can be drawn of batch jobs, or of PanDA jobs."""

    kinds: tuple[Kind, ...]
    metrics: tuple[Metric, ...]
    first_metrics: tuple[str, ...]  # which are drawn where none is asked for
    records: Records

    @property
    def kinds_by_name(self) -> dict[str, Kind]:
        """The charts of no one metric."""
        return {kind.chart.name: kind for kind in self.kinds}

    @property
    def metrics_by_name(self) -> dict[str, Metric]:
        """The metrics."""
        return {metric.name: metric for metric in self.metrics}

    @property
    def names(self) -> set[str]:
        """The names of all charts, as addresses have them."""
        return self.kinds_by_name.keys() | self.metrics_by_name.keys()


OFFERED = {
    BATCH_JOBS.name: Offered(
        _BATCH_KINDS, METRICS, ("metadata_operations", "duration_s"), BATCH_RECORDS
    ),
    # Those of their own: what several share is the batch job's, and drawn there.
    PANDA_JOBS.name: Offered(
        _PANDA_KINDS, PANDA_METRICS, ("panda_duration_s", "panda_setup_s"), PANDA_RECORDS
    ),
}


def chart_of(metric: Metric) -> Chart:
    """Return the chart of a metric's spread."""
    left_out = "" if metric.source in RECORDED else ", but those of poor data"
    return Chart(
        metric.name,
        metric.title,
        str(metric.unit),
        f"{metric.formula} ({metric.source}). Of all jobs that began in each bucket{left_out}.",
        Style.LINES,
        {"median": "median", "p90": "90 % are below"},
    )
