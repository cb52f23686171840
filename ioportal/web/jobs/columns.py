"""The columns of the job list: what they show, how they sort, what the twins call them."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from django.db.models import Case, F, Value, When
from django.db.models.functions import Concat

from collectors.tables import METADATA_OPERATIONS
from ioportal.analysis.metrics import METRICS, Unit
from ioportal.reporting.formatting import SHORT_UNITS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.db.models.expressions import Combinable

    from ioportal.jobs.models import Job


@dataclass(frozen=True)
class Column:
    """A fact or metric of a job.

    `field` is the path from a job, by which the database sorts; `shown` the attribute that rows
    show where that is another one; `unit` is None for facts.
    """

    name: str  # in URLs and twins: never renamed
    title: str
    field: str
    unit: Unit | None = None
    about: str = ""
    ascending_first: bool = False
    shown: str = ""

    @property
    def of_statistics(self) -> bool:
        """Whether it is a figure of the job's statistics."""
        return self.field.startswith("statistics__")

    def of(self, job: Job) -> Any:
        """Return the value for a job; None where it is not known."""
        if self.of_statistics and not hasattr(job, "statistics"):
            return None
        return attrgetter((self.shown or self.field).replace("__", "."))(job)

    @property
    def expression(self) -> Combinable:
        """What the database returns for the twins."""
        return _DISPLAY_ID if self.shown == "display_id" else F(self.field)

    @property
    def header_unit(self) -> str:
        """The unit as the column's head shows it."""
        return SHORT_UNITS[self.unit] if self.unit else ""


_DISPLAY_ID = Case(
    When(array_index="", then=F("batch_id")),
    default=Concat(F("batch_id"), Value("["), F("array_index"), Value("]")),
)
_FACTS = (
    Column("job", "Job", "batch_id", ascending_first=True, shown="display_id"),
    Column("cluster", "Cluster", "cluster__name", ascending_first=True),
    Column("name", "Name", "name", ascending_first=True),
    Column("user", "User", "owner", ascending_first=True),
    Column("project", "Project", "project", ascending_first=True),
    Column("queue", "Queue", "queue", ascending_first=True),
    Column("state", "State", "state", ascending_first=True),
    Column("quality", "Quality", "quality", about="how far the figures can be trusted"),
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


def chosen(names: Iterable[str]) -> tuple[Column, ...]:
    """Return the columns of these names in the registry's order; none known: the default ones.

    The job itself is always there: it names the row. The default ones have their own order: what
    an administrator looks for comes before what must be scrolled to.
    """
    wanted = {"job", *names} & BY_NAME.keys()
    if is_default(wanted):
        return tuple(BY_NAME[name] for name in DEFAULT)
    return tuple(column for column in COLUMNS if column.name in wanted)


def is_default(names: Iterable[str]) -> bool:
    """Whether these names ask for what is shown anyway."""
    return {"job", *names} in ({"job"}, set(DEFAULT))
