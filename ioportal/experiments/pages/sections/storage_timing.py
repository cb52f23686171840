"""Storage timing of CMSSW: arms with ratios, the delay as a share of the run, and all counters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

from django.urls import reverse

from ioportal.core.formatting import UNKNOWN, human, percent, significant
from ioportal.core.units import Unit
from ioportal.experiments.analysis.storage_timing import (
    COLUMNS,
    Counter,
    combined,
    comparison,
    counter_keys,
    ratios,
    timing,
)
from ioportal.experiments.analysis.timing_observations import (
    PLAUSIBLE_BYTES_PER_S,
    Observation,
    observations,
)
from ioportal.experiments.charts import storage_timing as charts
from ioportal.experiments.pages.sections.section import Export, Section
from ioportal.web.common.parts import Part
from ioportal.web.common.requests import other_parameters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ioportal.experiments.analysis.storage_timing import Row, Timing
    from ioportal.experiments.models import Run

MOST_COLUMNS = 6  # arms or runs next to each other
_KIBIBYTE = 2**10
_MEBIBYTE = 2**20
_MEGABYTE = 10**6
_MS = 1_000
_SHORT_S = 1  # shorter times are shown in ms


@dataclass(frozen=True)
class CounterRow:
    """A counter of an arm, with ratios to the first arm."""

    name: str
    counter: Counter
    operations_ratio: float | None
    time_ratio: float | None

    @property
    def cells(self) -> list[str]:
        """Operations, successes, MiB, and times in ms."""
        return [
            *(
                UNKNOWN if value is None else f"{value:,.0f}"
                for value in (self.counter.operations, self.counter.successes)
            ),
            UNKNOWN if self.counter.bytes is None else f"{self.counter.bytes / _MEBIBYTE:,.3f}",
            *(
                UNKNOWN if value is None else f"{_MS * value:,.6g}"
                for value in (self.counter.total_s, self.counter.min_s, self.counter.max_s)
            ),
            *(ratio_text(ratio) for ratio in (self.operations_ratio, self.time_ratio)),
        ]


class StorageTiming(Section):
    """Storage timing of arms, or of runs if there is one arm."""

    name = "storage-timing"
    title = "Storage timing"
    template = "experiments/_storage_timing.html"

    @cached_property
    def _runs_by_name(self) -> list[tuple[str, list[Run]]]:
        """The runs with counters by arm; each by itself if they have one arm."""
        arms = [
            (arm.name, [run for run in runs if run.counters])
            for arm, runs in self.page.runs_by_arm
            if any(run.counters for run in runs)
        ]
        if len(arms) == 1:
            return [(run.name, [run]) for run in arms[0][1]]
        return arms

    @property
    def is_present(self) -> bool:
        """Whether any run has counters."""
        return any(run.counters for run in self.page.runs)

    @cached_property
    def timings(self) -> list[Timing]:
        """One per arm, means over its runs; the first is the reference."""
        return [
            combined(
                name, [timing(run.name, run.counters, run.metrics, run.events) for run in runs]
            )
            for name, runs in self._runs_by_name[:MOST_COLUMNS]
        ]

    @property
    def hidden(self) -> int:
        """Number of arms or runs that are not shown."""
        return max(0, len(self._runs_by_name) - MOST_COLUMNS)

    @property
    def plausible_mb_per_s(self) -> float:
        """The highest plausible read rate of a run, from the URL; an invalid one is the default."""
        try:
            value = float(self.page.query.get("plausible", ""))
        except ValueError:
            value = 0.0
        return value if 0 < value < 1e6 else PLAUSIBLE_BYTES_PER_S / _MEGABYTE  # noqa: PLR2004

    @property
    def other_parameters(self) -> list[tuple[str, str]]:
        """Parameters of the URL that its form keeps."""
        return other_parameters(self.page.query, {"plausible"})

    @cached_property
    def observations(self) -> list[Observation]:
        """Findings and unsupported conclusions."""
        found = observations(self.timings, self.plausible_mb_per_s * _MEGABYTE)
        return [*self._repeated, *found]

    @property
    def _repeated(self) -> Iterator[Observation]:
        """Yield the runs of an arm that repeat another run."""
        for arm, runs in self.page.runs_by_arm:
            for first, other in combinations([run for run in runs if run.counters], 2):
                if first.counters == other.counters:
                    text = (
                        f"{arm.name}: runs {first.name} and {other.name} have identical counters. "
                        "They are one run: delete one of them."
                    )
                    yield Observation("repeated-run", text, is_doubt=True)

    @cached_property
    def findings(self) -> list[str]:
        """The observations in sentences."""
        return [f"{'Doubt: ' if each.is_doubt else ''}{each.text}" for each in self.observations]

    @cached_property
    def rows(self) -> list[Row]:
        """The derived figures."""
        return comparison(self.timings)

    @property
    def figures(self) -> Iterator[tuple[Any, list[tuple[str, str]]]]:
        """Yield each figure with a value and a ratio per arm."""
        for row in self.rows:
            texts = [figure_text(value, row.figure.unit) for value in row.values]
            yield row.figure, list(zip(texts, map(ratio_text, row.ratios), strict=True))

    @property
    def counters(self) -> Iterator[tuple[str, list[CounterRow]]]:
        """Yield each used counter with a row per arm."""
        for subsystem, name in counter_keys(self.timings):
            own = [each.counters.get((subsystem, name), Counter()) for each in self.timings]
            operations = ratios([each.operations for each in own])
            times = ratios([each.total_s for each in own])
            yield (
                f"{subsystem} {name}",
                [
                    CounterRow(each.name, counter, of_operations, of_time)
                    for each, counter, of_operations, of_time in zip(
                        self.timings, own, operations, times, strict=True
                    )
                ],
            )

    @property
    def model_url(self) -> str:
        """The address of the model with these runs."""
        return f"{reverse('model')}?experiment={self.page.experiment.slug}"

    def charts(self) -> list[Part]:
        """Return the uses of the wall time."""
        shares = charts.time_shares(self.timings)
        names = [each.name for each in self.timings]
        return [
            Part(
                "wall-time",
                "Wall time by use",
                "Share of the wall time. Reads: time inside reads of the protocol, the delay.",
                charts.wall_time(self.timings),
                ("arm", *charts.PARTS),
                [(name, *row) for name, row in zip(names, shares, strict=True)],
                charts.PARTS,
                [
                    (name, [_share_text(share) for share in row])
                    for name, row in zip(names, shares, strict=True)
                ],
                is_empty=not any(share is not None for row in shares for share in row),
            )
        ]

    def tables(self) -> dict[str, Export]:
        """Return the derived figures and the counters."""
        return {
            "figures": Export(
                "Derived figures",
                ("figure", "unit", "formula", "arm", "runs", "value", "ratio"),
                self._figure_rows(),
            ),
            "counters": Export(
                "Storage counters",
                ("subsystem", "counter", "arm", *COLUMNS, "operations_ratio", "time_ratio"),
                self._counter_rows(),
            ),
        }

    @property
    def figures_url(self) -> str:
        """The address of the export of derived figures."""
        return self.page.export_url(self, "figures")

    @property
    def counters_url(self) -> str:
        """The address of the export of counters."""
        return self.page.export_url(self, "counters")

    def _figure_rows(self) -> Iterator[Sequence[Any]]:
        for row in self.rows:
            figure = row.figure
            for each, value, ratio in zip(self.timings, row.values, row.ratios, strict=True):
                yield (
                    *(figure.name, str(figure.unit), figure.formula),
                    *(each.name, each.runs, value, ratio),
                )

    def _counter_rows(self) -> Iterator[Sequence[Any]]:
        for key, (_, rows) in zip(counter_keys(self.timings), self.counters, strict=True):
            for row in rows:
                values = (getattr(row.counter, column) for column in COLUMNS)
                yield (*key, row.name, *values, row.operations_ratio, row.time_ratio)


def figure_text(value: float | None, unit: Unit) -> str:
    """Return a figure: bytes in MiB, times in s or ms."""
    if value is None:
        return UNKNOWN
    write = _WRITE.get(unit)
    return write(value) if write else human(value, unit)


def _size(value: float) -> str:
    if not value:
        return "0"
    is_large = value >= _MEBIBYTE
    return f"{value / _MEBIBYTE:,.3f} MiB" if is_large else f"{value / _KIBIBYTE:,.2f} KiB"


def _time(value: float) -> str:
    return f"{value:,.2f} s" if value >= _SHORT_S or not value else f"{_MS * value:,.3g} ms"


def ratio_text(ratio: float | None) -> str:
    """Return a ratio; empty if it is unknown."""
    return "" if ratio is None else f"{significant(ratio)}\N{MULTIPLICATION SIGN}"


def _share_text(share: float | None) -> str:
    return UNKNOWN if share is None else f"{percent(share)} %"


_WRITE: dict[Unit, Callable[[float], str]] = {
    Unit.BYTES: _size,
    Unit.BYTES_PER_SECOND: lambda value: f"{value / _MEBIBYTE:,.2f} MiB/s",
    Unit.SECONDS: _time,
    Unit.SHARE: _share_text,
}
