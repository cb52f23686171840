"""The columns of the tables of batch jobs and PanDA jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl
from django.db.models import F, Field

from collectors.tables import METADATA_OPERATIONS, UTC_US
from ioportal.jobs.models.job import DISPLAY_ID
from ioportal.jobs.populations.selections import BATCH_JOBS, PANDA_JOBS
from ioportal.load.job_exports import PANDA_COLUMNS
from ioportal.metrics import METRICS

if TYPE_CHECKING:
    from django.db.models import Model
    from django.db.models.expressions import Combinable

    from ioportal.jobs.populations.selections import JobKind

_TYPES = {
    "BooleanField": pl.Boolean(),
    "DateTimeField": UTC_US,
    "FloatField": pl.Float64(),
    **dict.fromkeys(("IntegerField", "BigIntegerField", "BigAutoField"), pl.Int64()),
}


@dataclass(frozen=True)
class Table:
    """A table of jobs: columns by name, as paths from the model."""

    kind: JobKind
    paths: dict[str, str]

    def expression(self, name: str) -> Combinable:
        """Return the database expression of a column."""
        return DISPLAY_ID if name == "job" else F(self.paths[name])

    def field(self, name: str) -> Field:  # type: ignore[type-arg]  # of any type
        """Return the database field of a column."""
        model: type[Model] = self.kind.model
        *relations, last = self.paths[name].split("__")
        for relation in relations:
            model = model._meta.get_field(relation).related_model  # type: ignore[assignment]  # noqa: SLF001  (documented meta API)
        return model._meta.pk if last == "pk" else model._meta.get_field(last)  # type: ignore[return-value]  # noqa: SLF001

    def is_nullable(self, name: str) -> bool:
        """Whether a column may be null: its field is, or its row may be missing."""
        return "__" in self.paths[name] or self.field(name).null

    def type_of(self, name: str) -> pl.DataType:
        """Return the type of a column in frames."""
        return _TYPES.get(self.field(name).get_internal_type(), pl.String())


_QUALITY = (
    "quality",
    "bytes_quality",
    "covered_share",
    "ambiguous_share",
    "contradicted_share",
    "resets",
    "peak_resolution_s",
    "computed_at",
)
_BY_KIND = (name for kind in METADATA_OPERATIONS for name in (f"count_{kind}", f"mean_{kind}_us"))
_METRICS = (metric.name for metric in METRICS if metric.name != "node_count")
_FIGURES = tuple(dict.fromkeys((*_METRICS, *_BY_KIND, *_QUALITY)))
_FACTS = (
    *("name", "owner", "project", "queue", "state", "exit_status", "exit_signal", "submitted_at"),
    *("started_at", "ended_at", "node_count", "core_count", "cpu_s", "time_limit_s"),
)
JOBS = Table(
    BATCH_JOBS,
    {
        "id": "pk",
        "cluster": "cluster__name",
        "simulated": "cluster__simulated",
        "job": "batch_id",
        "batch_id": "batch_id",
        "array_index": "array_index",
        **{name: name for name in _FACTS},
        **{name: f"statistics__{name}" for name in _FIGURES},
    },
)
_OF_BATCH_JOB = (
    *("read_bytes", "write_bytes", "metadata_operations", "opens", "closes"),
    *("peak_metadata_rate", "quality", "bytes_quality"),
)
PANDA = Table(
    PANDA_JOBS,
    {
        **PANDA_COLUMNS,
        "id": "pk",
        "cluster": "cluster__name",
        "simulated": "cluster__simulated",
        "batch_job_id": "batch_job__pk",
        "batch_job_nodes": "batch_job__node_count",
        **{f"batch_job_{name}": f"batch_job__statistics__{name}" for name in _OF_BATCH_JOB},
    },
)
TABLES = {"jobs": JOBS, "panda": PANDA}
