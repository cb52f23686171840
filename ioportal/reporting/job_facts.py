"""What the job page says in figures, grouped for people and flat for its JSON twin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from collectors.batch import hostlists
from collectors.tables import METADATA_OPERATIONS
from ioportal.analysis.metrics import BY_NAME, METRICS, Metric
from ioportal.reporting import formatting

if TYPE_CHECKING:
    from ioportal.jobs.models import Job, JobStatistics
    from ioportal.jobs.workloads import Inside

GROUPS = {
    "Metadata": (
        "metadata_operations",
        "metadata_operations_per_node",
        "metadata_rate",
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


def hosts(job: Job) -> str:
    """Return the folded names of a job's nodes; "" where they are not known.

    On a Cray the batch system names none of them: those that its launches were placed on stand in.
    """
    if job.nodes:
        return job.nodes
    names = job.allocations.order_by("node__name").values_list("node__name", flat=True)
    return hostlists.fold(names)


def groups(statistics: JobStatistics) -> dict[str, list[Figure]]:
    """Return all metrics of a job by what they are about."""
    return {
        title: [_figure(BY_NAME[name], statistics) for name in names]
        for title, names in GROUPS.items()
    }


def by_kind(statistics: JobStatistics) -> list[tuple[str, int]]:
    """Return the metadata operations that were counted, most frequent first."""
    counts = [(kind, getattr(statistics, f"count_{kind}")) for kind in METADATA_OPERATIONS]
    return sorted((pair for pair in counts if pair[1]), key=lambda pair: -pair[1])


def sharing(inside: Inside | None) -> dict[str, Any]:
    """Return how many PanDA jobs ran inside, and whether figures are of several of them."""
    return {
        "npandajobs": inside.count if inside else 0,
        "shared_batch": inside.is_shared if inside else False,
    }


def facts(job: Job, statistics: JobStatistics | None, inside: Inside | None) -> dict[str, Any]:
    """Return all that is known of a job under names that never change; times in UTC."""
    known: dict[str, Any] = {
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
        known |= {metric.name: getattr(statistics, metric.name) for metric in METRICS}
        known |= {
            f"count_{kind}": getattr(statistics, f"count_{kind}") for kind in METADATA_OPERATIONS
        }
        known |= {name: getattr(statistics, name) for name in _QUALITY}
    return known


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
    "resets",
    "peak_resolution_s",
    "computed_at",
)


def _figure(metric: Metric, statistics: JobStatistics) -> Figure:
    value = getattr(statistics, metric.name)
    note = ""
    if metric.name == "peak_metadata_rate" and statistics.peak_resolution_s:
        note = f"over {formatting.duration(statistics.peak_resolution_s)}"
    if metric.name == "metadata_rpcs" and statistics.metadata_rpc_rate and statistics.duration_s:
        traced = formatting.duration(value / statistics.metadata_rpc_rate)
        note = f"in {traced} of {formatting.duration(statistics.duration_s)} traced"
    return Figure(metric, value, note)
