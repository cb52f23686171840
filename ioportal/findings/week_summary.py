"""The summary of a user's own jobs of a week."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db.models import Count, F, Sum
from django.urls import reverse

from ioportal.core import formatting
from ioportal.core.units import Unit
from ioportal.core.visible_text import visible
from ioportal.findings.models import Case
from ioportal.jobs.expressions import node_hours
from ioportal.jobs.models import Job

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from django.contrib.auth.models import User

_LISTED = 5
_NAME = 30  # characters of a job's name
_COLUMN = 16
_FIGURES = (
    ("Jobs", "jobs", Unit.JOBS),
    ("Node-hours", "node_hours", Unit.RATIO),
    ("Metadata operations", "metadata_operations", Unit.COUNT),
    ("Read", "read_bytes", Unit.BYTES),
    ("Written", "write_bytes", Unit.BYTES),
)


@dataclass(frozen=True)
class WeekSummary:
    """The jobs of a user that ended in a week, compared with the week before.

    Args:
        user: the owner of the jobs.
        start: begin of the week.
        end: its end.
    """

    user: User
    start: datetime
    end: datetime

    @cached_property
    def _week(self) -> dict[str, Any]:
        return self._sums(self.start, self.end)

    @cached_property
    def _before(self) -> dict[str, Any]:
        return self._sums(self.start - (self.end - self.start), self.start)

    def _ended(self, start: datetime, end: datetime) -> Any:
        own = Job.objects.visible_to(self.user).filter(owner=self.user.get_username())
        return own.filter(ended_at__gte=start, ended_at__lt=end)

    def _sums(self, start: datetime, end: datetime) -> dict[str, Any]:
        sums: dict[str, Any] = self._ended(start, end).aggregate(
            jobs=Count("pk"),
            node_hours=Sum(node_hours(None, None)),
            **{
                name: Sum(f"statistics__{name}")
                for name in ("metadata_operations", "read_bytes", "write_bytes")
            },
        )
        return sums

    @property
    def figures(self) -> Iterator[str]:
        """A line for each figure: of the week, and of the week before."""
        yield f"{'':20}{'this week':>{_COLUMN}}{'week before':>{_COLUMN}}"
        for title, name, unit in _FIGURES:
            values = (formatting.human(week[name], unit) for week in (self._week, self._before))
            yield f"{title:20}" + "".join(f"{value:>{_COLUMN}}" for value in values)

    @property
    def heaviest(self) -> Iterator[str]:
        """A line for each of the jobs with the most metadata operations."""
        known = self._ended(self.start, self.end).filter(
            statistics__metadata_operations__isnull=False
        )
        rows = known.select_related("cluster").annotate(
            operations=F("statistics__metadata_operations")
        )
        for job in rows.order_by("-operations", "pk")[:_LISTED]:
            name = visible(job.name[:_NAME])[:_NAME]
            yield f"{job.operations:>{_COLUMN},}  {visible(job.display_id)[:24]} {name}".rstrip()

    @cached_property
    def open_cases(self) -> int:
        """The number of unresolved cases of the user."""
        mine = Case.objects.visible_to(self.user).filter(owner=self.user.get_username())
        return mine.unresolved().count()

    @property
    def link(self) -> str:
        """The address of the user's page."""
        return f"{settings.PORTAL_URL}{reverse('user', args=[self.user.get_username()])}"
