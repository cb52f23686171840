"""Samples of the processes of runs: memory, swap, CPU and I/O over the run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.db.models import Count, F

from collectors.tables import PROCESS_LEVELS, PROCESS_SAMPLES, PROCESS_TOTALS
from ioportal.core.charts.palette import MOST_ARMS
from ioportal.core.formatting import decimal_bytes
from ioportal.core.units import Unit
from ioportal.experiments.analysis.runs import CORES, Totals, curves, totals
from ioportal.experiments.charts.lines import over_run
from ioportal.experiments.models import ProcessSample
from ioportal.experiments.pages.sections.section import Section
from ioportal.telemetry.copy import read_rows
from ioportal.web.common.parts import Part
from ioportal.web.common.tables import Column, Table, by_position
from ioportal.web.templatetags import ioportal as show

if TYPE_CHECKING:
    import polars as pl

    from ioportal.experiments.models import Run

PARAMETER = "samples"  # of the URL: the key of a run; repeated
_MOST_SAMPLES = 20_000  # of a run; of more, each n-th is read
_COLUMNS = {
    name: PROCESS_SAMPLES.columns[name] for name in ("elapsed_s", *PROCESS_LEVELS, *PROCESS_TOTALS)
}


@dataclass(frozen=True)
class Quantity:
    """A drawn column of the samples."""

    column: str
    title: str
    unit: str
    about: str
    only_if_used: bool = False


QUANTITIES = (
    Quantity("rss_bytes", "Resident memory", "bytes", "Highest of neighbouring samples."),
    Quantity("swap_bytes", "Swap", "bytes", "Highest of neighbouring samples.", only_if_used=True),
    Quantity(CORES, "Busy cores", "cores", "User and system CPU time per time."),
    Quantity("read_bytes", "Read from storage", "bytes/s", "Without the page cache."),
    Quantity("rchar_bytes", "Read by calls", "bytes/s", "With the page cache and pipes."),
    Quantity("write_bytes", "Written to storage", "bytes/s", "Without the page cache."),
    Quantity(
        "rx_bytes", "Received by the node", "bytes/s", "All network traffic.", only_if_used=True
    ),
)


@dataclass(frozen=True)
class Sampled:
    """A run with its samples."""

    run: Run
    curves: pl.DataFrame
    totals: Totals


class ProcessSamples(Section):
    """Samples of a run of each arm, or of runs chosen in the URL."""

    name = "process-samples"
    title = "Process samples"
    template = "experiments/_process_samples.html"
    parameters = frozenset({PARAMETER})

    @cached_property
    def _counts(self) -> dict[int, int]:
        """Number of samples by run."""
        of_runs = ProcessSample.objects.filter(run__experiment=self.page.experiment)
        counted = of_runs.order_by("run").values_list("run").annotate(Count("pk"))
        return dict(counted)

    @property
    def is_present(self) -> bool:
        """Whether any run has samples."""
        return bool(self._counts)

    @cached_property
    def runs(self) -> list[Run]:
        """All runs with samples."""
        return [run for run in self.page.runs if run.pk in self._counts]

    @cached_property
    def _chosen(self) -> list[Run]:
        """The runs of the URL, otherwise the first of each arm; at most as many as have a look."""
        keys = set(self.page.query.getlist(PARAMETER))
        chosen = [run for run in self.runs if str(run.pk) in keys]
        first_of_arms = {run.arm_id: run for run in reversed(self.runs)}
        return (chosen or sorted(first_of_arms.values(), key=self.runs.index))[:MOST_ARMS]

    @cached_property
    def shown(self) -> list[Sampled]:
        """The chosen runs with their samples."""
        return [self._sampled(run) for run in self._chosen]

    def _sampled(self, run: Run) -> Sampled:
        samples = ProcessSample.objects.filter(run=run)
        if (every := -(-self._counts[run.pk] // _MOST_SAMPLES)) > 1:
            samples = samples.annotate(number=F("pk") % every).filter(number=0)
        frame = read_rows(samples.order_by("pk").values_list(*_COLUMNS), _COLUMNS)
        return Sampled(run, curves(frame), totals(frame))

    @property
    def selectable(self) -> list[tuple[Run, bool]]:
        """Each run with samples, and whether it is shown."""
        return [(run, run in self._chosen) for run in self.runs]

    @property
    def most(self) -> int:
        """Largest number of runs in a chart."""
        return MOST_ARMS

    @cached_property
    def findings(self) -> list[str]:
        """Use of swap, and counters that fell."""
        found = []
        for each in self.shown:
            swap = each.totals.highest["swap_bytes"]
            if swap:
                found.append(f"{each.run.name} used up to {decimal_bytes(swap)} of swap.")
            if each.totals.falls:
                names = ", ".join(each.totals.falls)
                found.append(
                    f"{each.run.name}: counters fell ({names}), as old versions of prmon print "
                    "them when a process ends. Their totals are lower bounds."
                )
        return found

    def charts(self) -> list[Part[Any]]:
        """Return a chart per quantity that a shown run has."""
        return [self._chart(quantity) for quantity in QUANTITIES if self._is_drawn(quantity)]

    def _is_drawn(self, quantity: Quantity) -> bool:
        columns = [each.curves[quantity.column].drop_nulls() for each in self.shown]
        if quantity.only_if_used:
            return any(bool((column > 0).any()) for column in columns)
        return any(column.len() for column in columns)

    def _chart(self, quantity: Quantity) -> Part[Any]:
        runs = [(each.run.name, look, each.curves) for look, each in enumerate(self.shown)]
        rows = [
            (name, elapsed_s, value)
            for name, _, frame in runs
            for elapsed_s, value in frame.select("elapsed_s", quantity.column).iter_rows()
        ]
        return Part(
            quantity.title,
            by_position(
                Column("run", "Run"),
                Column("elapsed_s", "Time since start", unit="s", form=show.whole),
                Column(quantity.column, quantity.title, unit=quantity.unit),
            ),
            rows,
            f"samples-{quantity.column.replace('_', '-')}",
            over_run(quantity.title, quantity.unit, runs, quantity.column),
            about=f"{quantity.about} By the time since the start of the run.",
        )

    def tables(self) -> dict[str, Table[Any]]:
        """Return the totals of the shown runs."""
        looks = {each.run.pk: look for look, each in enumerate(self.shown, 1)}
        columns: tuple[Column[Sampled], ...] = (
            Column("run", "Run", "run__name"),
            Column(
                "arm",
                "Arm",
                "run__arm__name",
                cell=lambda each: show.arm(each.run.arm.name, looks[each.run.pk]),
            ),
            Column("samples", "Samples", "totals__samples", ""),
            Column("seconds", "Length", "totals__seconds", Unit.SECONDS),
            Column(CORES, "Mean busy cores", "totals__cores", ""),
            *(_total(name, "highest") for name in PROCESS_LEVELS),
            *(_total(name, "totals") for name in PROCESS_TOTALS),
        )
        return {"totals": Table("Totals of processes", columns, self.shown)}


_TITLES = {
    "rss_bytes": "Peak memory",
    "swap_bytes": "Peak swap",
    "read_bytes": "Read",
    "write_bytes": "Written",
}


def _total(name: str, kind: str) -> Column[Sampled]:
    return Column(name, _TITLES.get(name, ""), f"totals__{kind}__{name}", Unit.BYTES)
