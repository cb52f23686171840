"""Storage timing of CMSSW: arms with ratios, the delay as a share of the run, and all counters."""

from __future__ import annotations

from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

from django.urls import reverse

from ioportal.core.formatting import UNKNOWN, human, percent, significant
from ioportal.core.units import Unit
from ioportal.experiments.analysis.storage_timing import (
    Counter,
    combined,
    comparison,
    counter_keys,
    ratios,
    timing,
)
from ioportal.experiments.analysis.timing_observations import PLAUSIBLE_BYTES_PER_S, observations
from ioportal.experiments.charts import bars
from ioportal.experiments.pages.sections.section import Section
from ioportal.web.common.parts import Part
from ioportal.web.common.tables import Column, Table, by_position

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


class StorageTiming(Section):
    """Storage timing of arms, or of runs if there is one arm."""

    name = "storage-timing"
    title = "Storage timing"
    template = "experiments/_storage_timing.html"
    parameters = frozenset({"plausible"})

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

    @cached_property
    def findings(self) -> list[str]:
        """What the counters show and cannot show."""
        found = observations(self.timings, self.plausible_mb_per_s * _MEGABYTE)
        return [*self._repeated, *found]

    @property
    def _repeated(self) -> Iterator[str]:
        """Yield the runs of an arm that repeat another run."""
        for arm, runs in self.page.runs_by_arm:
            for first, other in combinations([run for run in runs if run.counters], 2):
                if first.counters == other.counters:
                    yield (
                        f"Doubt: {arm.name}: runs {first.name} and {other.name} have identical "
                        "counters. They are one run: delete one of them."
                    )

    @cached_property
    def rows(self) -> list[Row]:
        """The derived figures."""
        return comparison(self.timings)

    @property
    def _counters(self) -> Iterator[dict[str, Any]]:
        """Yield a row per arm of each used counter, with ratios to the first arm."""
        for key in counter_keys(self.timings):
            own = [each.counters.get(key, Counter()) for each in self.timings]
            operations = ratios([each.operations for each in own])
            times = ratios([each.total_s for each in own])
            for each, counter, of_operations, of_time in zip(
                self.timings, own, operations, times, strict=True
            ):
                yield {
                    **dict(zip(("subsystem", "counter"), key, strict=True)),
                    "arm": each.name,
                    **vars(counter),
                    "operations_ratio": of_operations,
                    "time_ratio": of_time,
                }

    @property
    def model_url(self) -> str:
        """The address of the model with these runs."""
        return f"{reverse('model')}?experiment={self.page.experiment.slug}"

    def charts(self) -> list[Part[Any]]:
        """Return the uses of the wall time."""
        shares = bars.time_shares(self.timings)
        names = [each.name for each in self.timings]
        return [
            Part(
                "Wall time by use",
                by_position(
                    Column("arm", "Arm"),
                    *(Column(name, name, unit=Unit.SHARE) for name in bars.PARTS),
                ),
                [(name, *row) for name, row in zip(names, shares, strict=True)],
                "wall-time",
                bars.wall_time(self.timings),
                has_figure=any(share is not None for row in shares for share in row),
                about="Share of the wall time. Reads: time inside reads of the protocol, the "
                "delay.",
            )
        ]

    def tables(self) -> dict[str, Table[Any]]:
        """Return the derived figures and the counters."""
        hidden = f" {self.hidden:,} more in the CSV of runs." if self.hidden else ""
        figures = Table(
            "Derived figures",
            (
                Column[Any]("figure", "Figure", "figure__title", hint="figure__formula"),
                *(_arm_column(number, each) for number, each in enumerate(self.timings)),
            ),
            self.rows,
            about="Figures of the protocol that reads the bytes; layers above it are never added. "
            f"CMSSW's megabytes have 2^20 bytes. Ratios are to {self.timings[0].name}.{hidden}",
            exported=(
                ("figure", "unit", "formula", "arm", "runs", "value", "ratio"),
                self._figure_rows(),
            ),
        )
        counters = Table(
            "Storage counters", _COUNTERS, list(self._counters), is_grouped=True, is_folded=True
        )
        return {"figures": figures, "counters": counters}

    def _figure_rows(self) -> Iterator[Sequence[Any]]:
        for row in self.rows:
            figure = row.figure
            for each, value, ratio in zip(self.timings, row.values, row.ratios, strict=True):
                yield (
                    *(figure.name, str(figure.unit), figure.formula),
                    *(each.name, each.runs, value, ratio),
                )


def _arm_column(number: int, timing: Timing) -> Column[Row]:
    facts = (timing.protocol, f"mean of {timing.runs:,}" if timing.runs > 1 else "")
    return Column(
        timing.name,
        timing.name,
        lambda row: figure_text(row.values[number], row.figure.unit),
        ", ".join(filter(None, facts)),
        note=lambda row: ratio_text(row.ratios[number]) if number else "",
    )


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


_COUNTERS: tuple[Column[dict[str, Any]], ...] = (
    Column("", "Counter", lambda row: f"{row['subsystem']} {row['counter']}"),
    Column("subsystem", ""),
    Column("counter", ""),
    Column("arm", "Arm"),
    Column("operations", "Operations", unit="", form="{:,.0f}".format),
    Column("successes", "Successful", unit="", form="{:,.0f}".format),
    Column("bytes", "Bytes", unit="MiB", form=lambda size: f"{size / _MEBIBYTE:,.3f}"),
    *(
        Column(name, title, unit="ms", form=lambda time_s: f"{_MS * time_s:,.6g}")
        for name, title in (("total_s", "Time"), ("min_s", "Min"), ("max_s", "Max"))
    ),
    Column("operations_ratio", "Ratio of operations", unit="", form=ratio_text),
    Column("time_ratio", "Ratio of time", unit="", form=ratio_text),
)
