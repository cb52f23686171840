"""Columns of the job list: values, order, names in exports."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from django.db.models import F

from collectors.tables import METADATA_OPERATIONS
from ioportal.core.formatting import SHORT_UNITS
from ioportal.core.units import Unit
from ioportal.jobs.models.job import DISPLAY_ID
from ioportal.metrics import METRICS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.db.models.expressions import Combinable

    from ioportal.jobs.models import Job


@dataclass(frozen=True)
class Column:
    """A fact or metric of a job.

    `field` is the path from a job that the database sorts by; `attribute` is the displayed value if
    different; `unit` is None for facts.
    """

    name: str  # in URLs and exports, stable
    title: str
    field: str
    unit: Unit | None = None
    about: str = ""
    ascending_first: bool = False
    attribute: str = ""

    @property
    def is_statistic(self) -> bool:
        """Whether the value is part of the job's statistics."""
        return self.field.startswith("statistics__")

    def value(self, job: Job) -> Any:
        """Return the value for a job; None if unknown."""
        if self.is_statistic and not hasattr(job, "statistics"):
            return None
        return attrgetter((self.attribute or self.field).replace("__", "."))(job)

    @property
    def expression(self) -> Combinable:
        """The database expression of the value."""
        return DISPLAY_ID if self.attribute == "display_id" else F(self.field)

    @property
    def header_unit(self) -> str:
        """The unit in the column heading."""
        return SHORT_UNITS[self.unit] if self.unit else ""


_FACTS = (
    Column("job", "Job", "batch_id", ascending_first=True, attribute="display_id"),
    Column("cluster", "Cluster", "cluster__name", ascending_first=True),
    Column("name", "Name", "name", ascending_first=True),
    Column("user", "User", "owner", ascending_first=True),
    Column("project", "Project", "project", ascending_first=True),
    Column("queue", "Queue", "queue", ascending_first=True),
    Column("state", "State", "state", ascending_first=True),
    Column("quality", "Quality", "quality", about="reliability of the figures"),
    Column("submitted", "Submitted", "submitted_at"),
    Column("started", "Started", "started_at"),
    Column("ended", "Ended", "ended_at"),
    Column("node_count", "Nodes", "node_count", Unit.NODES, "nodes of the job's allocation"),
)
_METRICS = tuple(
    Column(m.name, m.title, f"statistics__{m.name}", m.unit, f"{m.formula} ({m.source})")
    for m in METRICS
    if m.name != "node_count"
)
_KINDS = tuple(
    Column(f"count_{kind}", kind, f"statistics__count_{kind}", Unit.COUNT, f"sum of {kind}")
    for kind in METADATA_OPERATIONS
    if kind not in {"open", "close"}  # those are the metrics `opens` and `closes`
)
COLUMNS = (*_FACTS, *_METRICS, *_KINDS)
BY_NAME = {column.name: column for column in COLUMNS}

DEFAULT = (
    "job",
    "user",
    "name",
    "state",
    "quality",
    "started",
    "node_count",
    "duration_s",
    "metadata_operations",
    "peak_metadata_rate",
    "opens",
    "open_close_ratio",
    "read_bytes",
    "write_bytes",
    "project",
    "queue",
)


def selected_columns(names: Iterable[str]) -> tuple[Column, ...]:
    """Return the columns of these names, always with the job; the default without known names.

    In the default order, the columns that administrators need most come first.
    """
    selected = {"job", *names} & BY_NAME.keys()
    if is_default(selected):
        return tuple(BY_NAME[name] for name in DEFAULT)
    return tuple(column for column in COLUMNS if column.name in selected)


def is_default(names: Iterable[str]) -> bool:
    """Whether these names are the default."""
    return {"job", *names} in ({"job"}, set(DEFAULT))
