"""Results of IOR: bandwidth by operation and set-up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ioportal.core.formatting import with_unit
from ioportal.core.units import Unit
from ioportal.experiments.analysis.efficiency import mean_interval
from ioportal.experiments.charts.bars import box_plot
from ioportal.experiments.pages.sections.section import (
    IOR_LABEL,
    IOR_METRIC,
    Section,
    bounds,
    is_of_ior,
)
from ioportal.web.common.parts import Part
from ioportal.web.common.tables import Column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioportal.experiments.models import Run
    from ioportal.load.analysis.load_ramp import Interval

_BOX = (0.05, 0.25, 0.5, 0.75, 0.95)
_SET_UP = {  # labels that distinguish tests, if they differ between the runs, and their texts
    **dict.fromkeys(("api", "file_access", "ordering"), "{}"),
    "transfer_size": "{} transfers",
    "block_size": "{} blocks",
    "tasks_per_node": "{} tasks per node",
    "ior_version": "IOR {}",
}
_UNIT = Unit.BYTES_PER_SECOND


@dataclass(frozen=True)
class Test:
    """Repetitions of one operation with one set-up."""

    arm: str
    operation: str
    nodes: float | None
    set_up: str
    runs: list[Run]

    @property
    def name(self) -> str:
        """What distinguishes it, for charts."""
        nodes = f"{self.nodes:,g} node{'' if self.nodes == 1 else 's'}" if self.nodes else ""
        return ", ".join(filter(None, (self.arm, self.operation, nodes, self.set_up)))

    @property
    def bandwidths(self) -> Sequence[float]:
        """Bandwidth of each repetition."""
        return [run.metrics[IOR_METRIC] for run in self.runs]

    @property
    def mean(self) -> Interval | None:
        """Mean bandwidth with Student's interval; it is not below 0."""
        mean = mean_interval(np.array(self.bandwidths, float))
        return mean and replace(mean, low=max(mean.low, 0.0))

    def average(self, metric: str) -> float | None:
        """Return the mean of a metric; None: unknown."""
        values = [run.metrics[metric] for run in self.runs if metric in run.metrics]
        return sum(values) / len(values) if values else None


class Ior(Section):
    """Results of IOR."""

    name = "ior"
    title = "IOR"

    @cached_property
    def _runs(self) -> list[Run]:
        return [run for run in self.page.runs if is_of_ior(run) and IOR_METRIC in run.metrics]

    @property
    def is_present(self) -> bool:
        """Whether there are results."""
        return bool(self._runs)

    @cached_property
    def _differing(self) -> list[str]:
        """Labels with several values."""
        return [name for name in _SET_UP if len({run.labels.get(name) for run in self._runs}) > 1]

    @cached_property
    def tests(self) -> list[Test]:
        """The tests, by arm and operation."""
        groups: dict[tuple[str, str, float | None, str], list[Run]] = {}
        for run in self._runs:
            texts = (
                _SET_UP[name].format(run.labels[name])
                for name in self._differing
                if run.labels.get(name, run.arm.name) != run.arm.name
            )
            key = (run.arm.name, run.labels[IOR_LABEL], run.scale, ", ".join(texts))
            groups.setdefault(key, []).append(run)
        return [Test(*key, runs) for key, runs in groups.items()]

    @cached_property
    def findings(self) -> list[str]:
        """The best test of each operation."""
        found = []
        for operation in dict.fromkeys(test.operation for test in self.tests):
            known = [
                (test, test.mean)
                for test in self.tests
                if test.operation == operation and test.mean
            ]
            best, mean = max(known, key=lambda each: each[1].value)
            count = len(best.runs)
            found.append(
                f"Highest mean {operation} bandwidth: {with_unit(mean.value, _UNIT)} ({best.name}; "
                f"{count:,} repetition{'' if count == 1 else 's'})."
            )
        return found

    def charts(self) -> list[Part[Any]]:
        """Return the bandwidths by test."""
        return [
            Part(
                "Bandwidth by test",
                _TESTS,
                self.tests,
                "ior-bandwidth",
                box_plot(
                    ("Bandwidth", str(_UNIT)),
                    [
                        (test.name, test.operation, np.quantile(test.bandwidths, _BOX).tolist())
                        for test in self.tests
                    ],
                ),
                about="Boxes of the repetitions: quartiles and median; whiskers from the 5th to "
                "the 95th percentile. With one repetition a line.",
            )
        ]


_TESTS: tuple[Column[Test], ...] = (
    Column("", "Test", "name"),
    *(Column[Test](name, "") for name in ("arm", "operation", "nodes", "set_up")),
    Column("runs", "Runs", lambda test: len(test.runs), ""),
    Column("mean_bytes_per_s", "Mean", "mean__value", _UNIT),
    *bounds(_UNIT, "mean"),
    Column("least", "Min", lambda test: min(test.bandwidths), _UNIT),
    Column("most", "Max", lambda test: max(test.bandwidths), _UNIT),
    Column("bytes", "Bytes", lambda test: test.average("bytes"), Unit.BYTES),
    Column("open_s", "", lambda test: test.average("open_s")),
    Column("io_s", "", lambda test: test.average("io_s")),
    Column("close_s", "", lambda test: test.average("close_s")),
    Column("total_s", "Total time", lambda test: test.average("total_s"), Unit.SECONDS),
)
