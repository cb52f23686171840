"""Facts and figures of a job: grouped for people, flat for programs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from collectors.batch import hostlists
from collectors.tables import METADATA_OPERATIONS
from ioportal.core import formatting
from ioportal.core.time_ranges import TimeRange
from ioportal.jobs import similar_jobs
from ioportal.jobs.analysis.anonymity import MIN_GROUP, MIN_OWNERS
from ioportal.jobs.models import DirtyStatistics
from ioportal.metrics import BY_NAME, METRICS, Metric

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User

    from ioportal.jobs.models import Job, JobStatistics
    from ioportal.jobs.panda_jobs import PandaSummary
    from ioportal.jobs.similar_jobs import Standing

GROUPS = {
    "Metadata": (
        "metadata_operations",
        "metadata_operations_per_node",
        "metadata_rate",
        "mean_operation_us",
        "peak_metadata_rate",
        "startup_share",
        "largest_target_share",
        "opens",
        "closes",
        "open_close_ratio",
    ),
    "Data": (
        "read_bytes",
        "write_bytes",
        "read_bytes_per_node",
        "write_bytes_per_node",
        "mean_read_bytes",
        "mean_write_bytes",
    ),
    "Metadata RPCs": (
        "metadata_rpcs",
        "lock_enqueues",
        "metadata_rpc_rate",
        "mean_service_us",
        "max_service_us",
        "mean_queue_us",
    ),
    "Run": ("duration_s", "node_count", "cpu_efficiency"),
}


@dataclass(frozen=True)
class Figure:
    """A metric's value for a job."""

    metric: Metric
    value: float | None
    note: str = ""


@dataclass(frozen=True)
class Comparison:
    """A job among similar jobs, as far as the reader may see them."""

    job: Job
    statistics: JobStatistics
    reader: User | AnonymousUser
    fewest, fewest_users = MIN_GROUP, MIN_OWNERS

    @cached_property
    def standings(self) -> list[Standing]:
        """Ranks by metric."""
        return similar_jobs.standings(self.job, self.statistics, self.reader)

    @property
    def has_ranks(self) -> bool:
        """Whether there are enough similar jobs for any metric."""
        return any(standing.rank is not None for standing in self.standings)


def statistics_of(job: Job) -> JobStatistics | None:
    """Return the statistics of a job; None while they are pending."""
    return getattr(job, "statistics", None)


def run(job: Job) -> TimeRange | None:
    """Return the known run of a job; None without a duration."""
    if job.started_at is None or job.known_until is None or job.known_until <= job.started_at:
        return None
    return TimeRange(job.started_at, job.known_until)


def hosts(job: Job) -> str:
    """Return the folded node names of a job; "" if unknown.

    On a Cray, batch accounting has no node names: the nodes of the launches are used instead.
    """
    if job.nodes:
        return job.nodes
    names = job.allocations.order_by("node__name").values_list("node__name", flat=True)
    return hostlists.fold(names)


def groups(statistics: JobStatistics) -> dict[str, list[Figure]]:
    """Return all metrics of a job by subject."""
    return {
        title: [_figure(BY_NAME[name], statistics) for name in names]
        for title, names in GROUPS.items()
    }


def by_kind(statistics: JobStatistics) -> list[tuple[str, int, float | None]]:
    """Return kind, number and mean time (µs) of metadata operations, most frequent first."""
    rows = [
        (kind, getattr(statistics, f"count_{kind}"), getattr(statistics, f"mean_{kind}_us"))
        for kind in METADATA_OPERATIONS
    ]
    return sorted((row for row in rows if row[1]), key=lambda row: -row[1])


def sharing(inside: PandaSummary | None) -> dict[str, Any]:
    """Return the number of PanDA jobs inside, and whether they share the figures."""
    return {
        "npandajobs": inside.count if inside else 0,
        "shared_batch": inside.is_shared if inside else False,
    }


def has_pending_statistics(job: Job) -> bool:
    """Return whether recomputation of a job's figures is pending."""
    return DirtyStatistics.objects.filter(job_id=job.pk).exists()


def facts(
    job: Job, statistics: JobStatistics | None, inside: PandaSummary | None
) -> dict[str, Any]:
    """Return a job as a flat object with stable names; times are in UTC."""
    values: dict[str, Any] = {
        "id": job.pk,
        "cluster": job.cluster.name,
        "simulated": job.cluster.simulated,
        "job": job.display_id,
        **{name: getattr(job, name) for name in _FACTS},
        "nodes": hosts(job),
        **sharing(inside),
        "quality": None,
    }
    if statistics:
        values |= {metric.name: getattr(statistics, metric.name) for metric in METRICS}
        values |= {
            name: getattr(statistics, name)
            for kind in METADATA_OPERATIONS
            for name in (f"count_{kind}", f"mean_{kind}_us")
        }
        values |= {name: getattr(statistics, name) for name in _QUALITY}
        values["pending_statistics"] = has_pending_statistics(job)
    return values


_FACTS = (
    "batch_id",
    "array_index",
    "name",
    "owner",
    "project",
    "queue",
    "state",
    "exit_status",
    "exit_signal",
    "submitted_at",
    "started_at",
    "ended_at",
    "node_count",
    "core_count",
    "cpu_s",
    "time_limit_s",
)
_QUALITY = (
    "quality",
    "quality_reasons",
    "bytes_quality",
    "bytes_reasons",
    "covered_share",
    "ambiguous_share",
    "contradicted_share",
    "resets",
    "peak_resolution_s",
    "computed_at",
)


def _figure(metric: Metric, statistics: JobStatistics) -> Figure:
    value = getattr(statistics, metric.name)
    note = ""
    if metric.name == "peak_metadata_rate" and statistics.peak_resolution_s:
        note = f"over {formatting.duration(statistics.peak_resolution_s)}"
        if statistics.peak_is_capped:
            note += ", limited to the RPCs in the trace"
    if metric.name == "metadata_rpcs" and statistics.metadata_rpc_rate and statistics.duration_s:
        traced = formatting.duration(value / statistics.metadata_rpc_rate)
        note = f"in {traced} of {formatting.duration(statistics.duration_s)} traced"
    return Figure(metric, value, note)
