"""System calls of runs as frames, and what owners decide about their look-ups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from collectors.tables import SYSTEM_CALLS
from ioportal.experiments.analysis.lookups import FILE_PATTERNS
from ioportal.experiments.models import SystemCall, SystemCallWindow
from ioportal.telemetry.copy import read_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioportal.experiments.models import Experiment, Run

AREAS, PATTERNS = "storage_areas", "file_patterns"  # names in `Experiment.settings`
_CALLS = {name: kind for name, kind in SYSTEM_CALLS.columns.items() if name != "second"}
_WINDOWS = {
    name: {**SYSTEM_CALLS.columns, "failed": pl.Boolean()}[name]
    for name in ("second", "call", "failed", "count", "duration_s")
}


def calls_of(runs: Sequence[Run]) -> pl.DataFrame:
    """Return the calls of runs by call, path and error; keys may repeat."""
    rows = SystemCall.objects.filter(run__in=runs).values_list(*_CALLS)
    return read_rows(rows, _CALLS).with_columns(pl.col("error").fill_null(""))


def windows_of(run: Run) -> pl.DataFrame:
    """Return the calls of a run by 10 s, call and whether they failed."""
    return read_rows(SystemCallWindow.objects.filter(run=run).values_list(*_WINDOWS), _WINDOWS)


def own_prefixes(experiment: Experiment) -> dict[str, str] | None:
    """Return the storage areas of an experiment by prefix; None: the usual ones apply."""
    own: dict[str, str] | None = experiment.settings.get(AREAS)
    return own


def patterns(experiment: Experiment) -> dict[str, list[str]]:
    """Return the shell patterns of files by name."""
    own: dict[str, list[str]] | None = experiment.settings.get(PATTERNS)
    return own or {name: list(globs) for name, globs in FILE_PATTERNS.items()}
