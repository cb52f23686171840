"""The list of experiments."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.db.models import Count

from ioportal.experiments.models import Experiment
from ioportal.web.common.tables import Column, Table, included, to

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.db.models import QuerySet
    from django.http import QueryDict

PER_PAGE = 50
_COLUMNS: tuple[Column[Any], ...] = (
    Column("slug", ""),
    Column("name", "Name", link=to("experiment", "slug")),
    Column(
        "owner",
        "Owner",
        "owner__username",
        cell=lambda experiment: experiment.owner.username if experiment.owner else "staff",
    ),
    Column("project", ""),
    Column("arms", "Arms", "arm_count", ""),
    Column("runs", "Runs", "run_count", ""),
    Column("created_at", "Created"),
    Column(
        "",
        "Visible to",
        "pk",
        cell=lambda experiment: included("experiments/_visibility.html", experiment=experiment),
    ),
    Column("simulated", ""),
)


class ExperimentList:
    """The experiments that a user may see, latest first."""

    def __init__(self, user: User, query: QueryDict) -> None:
        self._user = user
        self._query = query

    @cached_property
    def experiments(self) -> QuerySet[Experiment]:
        """The experiments with runs, and their numbers of arms and runs."""
        visible = Experiment.objects.visible_to(self._user).select_related("owner")
        counted = visible.annotate(
            arm_count=Count("arms", distinct=True), run_count=Count("runs", distinct=True)
        )
        return counted.filter(run_count__gt=0).order_by("-created_at", "-pk")

    @cached_property
    def table(self) -> Table[Any]:
        """The experiments in columns."""
        return Table(
            "Experiments", _COLUMNS, self.experiments, query=self._query, per_page=PER_PAGE
        )

    @property
    def simulated(self) -> bool:
        """Whether an experiment on the page is simulated."""
        return any(experiment.simulated for experiment in self.table.page)
