"""The list of experiments."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.core.paginator import Paginator
from django.db.models import Count

from ioportal.experiments.models import Experiment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.contrib.auth.models import User
    from django.core.paginator import Page
    from django.db.models import QuerySet
    from django.http import QueryDict

PER_PAGE = 50
COLUMNS = ("slug", "name", "owner", "project", "arms", "runs", "created_at", "simulated")


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
    def page(self) -> Page[Experiment]:
        """The page of the query."""
        return Paginator(self.experiments, PER_PAGE).get_page(self._query.get("page"))

    @property
    def simulated(self) -> bool:
        """Whether an experiment on the page is simulated."""
        return any(experiment.simulated for experiment in self.page)

    @property
    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of the export: `COLUMNS`."""
        yield from self.experiments.values_list(
            *("slug", "name", "owner__username", "project"),
            *("arm_count", "run_count", "created_at", "simulated"),
        )
