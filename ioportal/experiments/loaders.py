"""Files of experiments: runs, system calls, samples of processes, transfers of pairs."""

from __future__ import annotations

import math
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import polars as pl

from collectors import tables
from ioportal.core.visible_text import storable
from ioportal.experiments.analysis.lookups import Totals
from ioportal.experiments.experiments import (
    MEASUREMENTS,
    Contradiction,
    RunRecord,
    named_experiment,
    record_runs,
)
from ioportal.experiments.models import (
    Experiment,
    PairTransfer,
    ProcessSample,
    Run,
    SystemCall,
    SystemCallWindow,
)
from ioportal.ingest.loaders import FILE_LOADERS, NAMED
from ioportal.ingest.loaders.common import needed
from ioportal.ingest.loading import Loader, Refused
from ioportal.ingest.models import Segment
from ioportal.ingest.reconciliation.comparing import STORED
from ioportal.site import name_ids
from ioportal.telemetry.copy import copy_frame

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.db import models

    from collectors.parsed import Parsed
    from ioportal.ingest.loading import LoadOptions, Origin

_PATH_CHARACTERS = 4_096
_NAME_CHARACTERS = 64
_RUN_CHARACTERS = 120


class _ExperimentLoader(Loader):
    """Base of the loaders: a file belongs to one experiment."""

    def __init__(self, options: LoadOptions, segment: Segment, origin: Origin) -> None:
        super().__init__(options, segment, origin)
        self.experiment: Experiment = needed(
            origin.experiment, "--experiment: the experiment of the run"
        )

    @property
    def run_name(self) -> str:
        """The name of the run: the given name, or the file name without its extension."""
        return (self.origin.run or PurePath(self.segment.name).stem)[-_RUN_CHARACTERS:]

    def record(self, records: Iterable[RunRecord]) -> list[Run]:
        """Store what the file says about runs."""
        try:
            runs = record_runs(self.experiment, records, replace=self.options.replace)
        except Contradiction as error:
            raise Refused(f"{self.segment.name}: {error} Nothing was loaded.") from error
        self.segment.runs.add(*runs)
        return runs

    @cached_property
    def run(self) -> Run:
        """The only run of the file."""
        [run] = self.record([RunRecord(self.run_name, self.origin.arm)])
        return run


class RunsLoader(_ExperimentLoader):
    """Runs with their labels, metrics, steps and counters."""

    def __init__(self, options: LoadOptions, segment: Segment, origin: Origin) -> None:
        super().__init__(options, segment, origin)
        self._rows: list[dict[str, Any]] = []

    def store(self, parsed: Parsed) -> None:
        """Append the runs."""
        self._rows += parsed.table.rows(named=True)
        self.segment.records += parsed.table.height

    def finish(self) -> None:
        """Store the runs; runs without a name are numbered."""
        unnamed = sum(not row["run"] for row in self._rows)
        number = 0
        records = []
        for row in self._rows:
            name = row["run"]
            if not name:
                number += 1
                name = f"{self.run_name} {number}" if unnamed > 1 else self.run_name
            records.append(_record(row, name, row["arm"] or self.origin.arm))
        self.record(records)


def _record(row: dict[str, Any], name: str, arm: str) -> RunRecord:
    return RunRecord(
        name=storable(name),
        arm=storable(arm),
        state=row["state"],
        started_at=row["started_at"],
        scale=row["scale"],
        events=row["events"],
        labels={storable(each["name"]): storable(each["value"]) for each in row["labels"]},
        metrics={
            storable(each["name"]): each["value"]
            for each in row["metrics"]
            if math.isfinite(each["value"])
        },
        steps=[{**each, "name": storable(each["name"])} for each in row["steps"]],
        counters=row["counters"],
        markers=[storable(marker) for marker in row["markers"]],
    )


class _MeasurementsLoader(_ExperimentLoader):
    """Base of loaders of many rows of one run, which are loaded once."""

    stored_in: tuple[type[models.Model], ...]

    def __init__(self, options: LoadOptions, segment: Segment, origin: Origin) -> None:
        super().__init__(options, segment, origin)
        known = self.experiment.runs.filter(name=self.run_name).first()
        for model in self.stored_in:
            rows = model._default_manager.filter(run=known)  # noqa: SLF001  (Django's documented manager)
            if known and options.replace:
                rows.delete()
                known.segments.filter(format=segment.format).delete()
            elif known and rows.exists():
                raise Refused(
                    f"Run {known.name} of {self.experiment} has such data already. Give the run "
                    "another name, or give all files of the run in one command with --replace."
                )

    def append(self, model: type[models.Model], rows: pl.DataFrame) -> None:
        """Append rows of the run."""
        copy_frame(model, rows.with_columns(run_id=pl.lit(self.run.pk)))


class SystemCallsLoader(_MeasurementsLoader):
    """System calls of a run, counted by call, path and result."""

    stored_in = (SystemCall, SystemCallWindow)

    def __init__(self, options: LoadOptions, segment: Segment, origin: Origin) -> None:
        super().__init__(options, segment, origin)
        self._totals = Totals()

    def store(self, parsed: Parsed) -> None:
        """Add the calls to the totals."""
        self._totals.add(parsed.table)

    def finish(self) -> None:
        """Store the totals."""
        path = name_ids.storable(pl.col("path"), _PATH_CHARACTERS)
        calls = self._totals.calls.with_columns(path)
        self.append(SystemCall, calls)
        self.append(SystemCallWindow, self._totals.windows)
        self.segment.records += calls.height


class RowsLoader(_MeasurementsLoader):
    """Rows that are stored as they are read."""

    texts: tuple[str, ...] = ()  # columns of names

    def store(self, parsed: Parsed) -> None:
        """Append the rows."""
        names = [name_ids.storable(pl.col(name), _NAME_CHARACTERS) for name in self.texts]
        self.append(self.stored_in[0], parsed.table.drop("line").with_columns(names))
        self.segment.records += parsed.table.height


class ProcessSamplesLoader(RowsLoader):
    """Samples of the processes of a run."""

    stored_in = (ProcessSample,)


class PairTransfersLoader(RowsLoader):
    """Transfers between clients and storage targets."""

    stored_in = (PairTransfer,)
    texts = ("client", "target")


def register() -> None:
    """Register the loaders of files of experiments, and how their stored rows are counted."""
    NAMED["experiment"] = named_experiment
    FILE_LOADERS.update(
        {
            tables.RUNS: RunsLoader,
            tables.SYSTEM_CALLS: SystemCallsLoader,
            tables.PROCESS_SAMPLES: ProcessSamplesLoader,
            tables.PAIR_TRANSFERS: PairTransfersLoader,
        }
    )
    STORED.update(dict.fromkeys((tables.RUNS, *MEASUREMENTS), _stored))


def _stored(segment: Segment) -> int:
    """Return the number of runs or rows of a file; files of a run share its rows."""
    runs = segment.runs.all()
    if segment.table is tables.RUNS:
        return runs.count()
    rows = MEASUREMENTS[segment.table].objects.filter(run__in=runs).count()
    same = Segment.objects.filter(runs__in=runs, format=segment.format).distinct()
    return int(rows - sum(other.records for other in same if other != segment))
