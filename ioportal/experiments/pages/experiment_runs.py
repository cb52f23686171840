"""The arms and runs of an experiment, which the sections of its page read."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from django.urls import reverse

from ioportal.core.charts.palette import LOOKS

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import QueryDict

    from ioportal.experiments.models import Arm, Experiment, Run


class ExperimentRuns:
    """An experiment, its arms and runs, as the sections of its page read them."""

    def __init__(self, experiment: Experiment, user: User, query: QueryDict) -> None:
        self.experiment = experiment
        self.user = user
        self.query = query

    @cached_property
    def arms(self) -> list[Arm]:
        """The arms in order; the first is the reference."""
        return list(self.experiment.arms.all())

    @cached_property
    def runs(self) -> list[Run]:
        """All runs, by arm."""
        return list(self.experiment.runs.select_related("arm", "job__cluster"))

    @cached_property
    def runs_by_arm(self) -> list[tuple[Arm, list[Run]]]:
        """The runs of each arm."""
        runs: dict[int, list[Run]] = {arm.pk: [] for arm in self.arms}
        for run in self.runs:
            runs[run.arm_id].append(run)
        return [(arm, runs[arm.pk]) for arm in self.arms]

    @property
    def looks(self) -> dict[int, int]:
        """Number of the look of each arm, from 1, by its key."""
        return {arm.pk: number % len(LOOKS) + 1 for number, arm in enumerate(self.arms)}

    @property
    def url(self) -> str:
        """The address of the page."""
        return reverse("experiment", args=[self.experiment.slug])

    def export_url(self, section: str, name: str) -> str:
        """Return the address of an export of a section, without the format."""
        address = reverse("experiment_export", args=[self.experiment.slug, section, name])
        query = self.query.copy()
        query.pop("format", None)
        return f"{address}?{query.urlencode()}"
