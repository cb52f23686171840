"""Experiments of the demo: an example of each kind, loaded through the collectors."""

from __future__ import annotations

import csv
import subprocess
import sys
from itertools import groupby
from typing import TYPE_CHECKING

from django.conf import settings

from ioportal.demo.loading import Step
from ioportal.experiments.experiments import named_experiment
from ioportal.experiments.models import Experiment

if TYPE_CHECKING:
    from pathlib import Path

_FOLDER: Path = settings.BASE_DIR / "var/experiments"
_INDEX = "files.csv"
_OF_RUN = ("experiment", "format", "arm", "run")


def load() -> None:
    """Write the examples and load them; loaded ones are skipped."""
    if not (_FOLDER / _INDEX).exists():
        command = [sys.executable, "-m", "simulator", "experiments", "--out", str(_FOLDER)]
        subprocess.run(command, cwd=settings.BASE_DIR, check=True)  # noqa: S603  (our own program)
    with (_FOLDER / _INDEX).open(newline="") as index:
        rows = list(csv.DictReader(index))
    for name, description in {row["experiment"]: row["description"] for row in rows}.items():
        experiment = named_experiment(name, simulated=True)
        Experiment.objects.filter(pk=experiment.pk).update(description=description, is_public=True)
    for (experiment_name, form, arm, run), files in groupby(
        rows, key=lambda row: tuple(row[name] for name in _OF_RUN)
    ):
        options = (f"--experiment={experiment_name}", f"--arm={arm}", f"--run={run}")
        Step((form, *options), tuple(_FOLDER / row["file"] for row in files)).load()
