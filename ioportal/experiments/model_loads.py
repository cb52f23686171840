"""What runs, jobs and populations ask of the storage, as loads of the latency model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import Avg, Count, ExpressionWrapper, F, FloatField
from django.db.models.functions import NullIf

from ioportal.experiments.analysis.latency_model import Load

if TYPE_CHECKING:
    from ioportal.experiments.models import Run
    from ioportal.jobs.models import Job


def run_load(run: Run) -> Load | None:
    """Return reads and bytes of a run, with its time in reads; None: they are unknown."""
    operations, size = run.metrics.get("read_operations"), run.metrics.get("read_bytes")
    if operations is None or size is None or min(operations, size) < 0:
        return None
    return Load(run.name, operations, size, run.metrics.get("read_s"))


def _transfers(kind: str) -> Any:
    """Return the requests of a job to read or write: bytes / mean size; null: unknown."""
    size, mean = F(f"statistics__{kind}_bytes"), F(f"statistics__mean_{kind}_bytes")
    return ExpressionWrapper(size / NullIf(mean, 0.0), FloatField())


def population_load(name: str, jobs: Any) -> tuple[Load, int] | None:
    """Return the mean per node of jobs with known statistics, and their number; None: none has.

    Operations are metadata operations, and requests to read and to write. Nodes are taken to work
    at the same time, so that a job's share per node counts.

    Args:
        name: of the population.
        jobs: a QuerySet of batch jobs.
    """
    known = jobs.order_by().filter(
        statistics__metadata_operations__isnull=False,
        statistics__read_bytes__isnull=False,
        statistics__write_bytes__isnull=False,
        statistics__node_count__gt=0,
    )
    nodes = F("statistics__node_count")
    means = known.annotate(
        metadata=ExpressionWrapper(
            1.0 * F("statistics__metadata_operations") / nodes, FloatField()
        ),
        reads=ExpressionWrapper(_transfers("read") / nodes, FloatField()),
        writes=ExpressionWrapper(_transfers("write") / nodes, FloatField()),
        transferred=ExpressionWrapper(
            1.0 * (F("statistics__read_bytes") + F("statistics__write_bytes")) / nodes, FloatField()
        ),
    ).aggregate(
        Avg("metadata"), Avg("reads"), Avg("writes"), Avg("transferred"), number=Count("pk")
    )
    if not means["number"]:
        return None
    operations = sum(means[f"{part}__avg"] or 0.0 for part in ("metadata", "reads", "writes"))
    return Load(name, operations, means["transferred__avg"]), means["number"]


def job_load(job: Job) -> Load | None:
    """Return the load of a job per node; None: its statistics are unknown."""
    found = population_load(f"job {job.display_id}", type(job).objects.filter(pk=job.pk))
    return found and found[0]
