"""Columns of the job list: values, order, names in exports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import F
from django.urls import reverse
from django.utils.html import format_html

from collectors.tables import METADATA_OPERATIONS
from ioportal.core.units import Unit
from ioportal.jobs.models.job import DISPLAY_ID
from ioportal.metrics import METRICS
from ioportal.web.common.tables import Column
from ioportal.web.templatetags import ioportal as show

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.db.models.expressions import Combinable

    from ioportal.jobs.models import Job


def _job(job: Job) -> str:
    link = format_html('<a href="{}">{}</a>', reverse("job", args=[job.pk]), job.display_id)
    worst = getattr(job, "worst_flag", None)
    return format_html("{} {}", link, show.flag_mark(worst)) if worst else link


def _text(name: str, title: str, path: str = "") -> Column[Job]:
    return Column(name, title, path, form=show.clipped, ascending_first=True)


_FACTS: tuple[Column[Job], ...] = (
    Column("job", "Job", "display_id", cell=_job, ascending_first=True),
    _text("cluster", "Cluster", "cluster__name"),
    _text("name", "Name"),
    _text("user", "User", "owner"),
    _text("project", "Project"),
    _text("queue", "Queue"),
    Column(
        "state",
        "State",
        cell=lambda job: show.badge(job.state, job.get_state_display()),
        ascending_first=True,
    ),
    Column(
        "quality",
        "Quality",
        form=lambda quality: show.badge(quality, quality),
        about="reliability of the figures",
    ),
    Column("submitted", "Submitted", "submitted_at", form=show.minute),
    Column("started", "Started", "started_at", form=show.minute),
    Column("ended", "Ended", "ended_at", form=show.minute),
    Column("node_count", "Nodes", unit=Unit.NODES, about="nodes of the job's allocation"),
)
_METRICS: tuple[Column[Job], ...] = tuple(
    Column(m.name, m.title, f"statistics__{m.name}", m.unit, about=f"{m.formula} ({m.source})")
    for m in METRICS
    if m.name != "node_count"
)
_KINDS: tuple[Column[Job], ...] = tuple(
    Column(f"count_{kind}", kind, f"statistics__count_{kind}", Unit.COUNT, about=f"sum of {kind}")
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


def selected_columns(names: Iterable[str]) -> tuple[Column[Job], ...]:
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


def field(column: Column[Job]) -> str:
    """Return the field that the database sorts a column by."""
    return "batch_id" if column.name == "job" else column.path


def is_statistic(column: Column[Job]) -> bool:
    """Whether the values of a column are part of the job's statistics."""
    return column.path.startswith("statistics__")


def expression(column: Column[Job]) -> Combinable:
    """Return the database expression of the values of a column."""
    return DISPLAY_ID if column.name == "job" else F(column.path)
