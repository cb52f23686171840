"""Results of IOR: bandwidth by operation and set-up."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from statistics import fmean
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ioportal.core.formatting import with_unit
from ioportal.core.units import Unit
from ioportal.experiments.analysis.access_methods import mean_interval
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
    from ioportal.experiments.models import Run

_BOX = (0.05, 0.25, 0.5, 0.75, 0.95)
_SET_UP = {  # labels that distinguish tests, if they differ between the runs, and their texts
    **dict.fromkeys(("api", "file_access", "ordering"), "{}"),
    "transfer_size": "{} transfers",
    "block_size": "{} blocks",
    "tasks_per_node": "{} tasks per node",
    "ior_version": "IOR {}",
}
_UNIT = Unit.BYTES_PER_SECOND
Test: TypeAlias = dict[str, Any]


def _test(arm: str, operation: str, nodes: float | None, set_up: str, runs: list[Run]) -> Test:
    """Return repetitions of one operation with one set-up, and their figures."""
    count = f"{nodes:,g} node{'' if nodes == 1 else 's'}" if nodes else ""
    bandwidths = [run.metrics[IOR_METRIC] for run in runs]
    mean = mean_interval(np.array(bandwidths, float))
    means = {
        name: fmean(values)
        for name in ("bytes", "open_s", "io_s", "close_s", "total_s")
        if (values := [run.metrics[name] for run in runs if name in run.metrics])
    }
    return {
        "name": ", ".join(filter(None, (arm, operation, count, set_up))),
        "arm": arm,
        "operation": operation,
        "nodes": nodes,
        "set_up": set_up,
        "runs": len(runs),
        "least": min(bandwidths),
        "most": max(bandwidths),
        "quantiles": np.quantile(bandwidths, _BOX).tolist(),
        "mean": mean and replace(mean, low=max(mean.low, 0.0)),
        **means,
    }


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
        return [_test(*key, runs) for key, runs in groups.items()]

    @cached_property
    def findings(self) -> list[str]:
        """The best test of each operation."""
        found = []
        for operation in dict.fromkeys(test["operation"] for test in self.tests):
            tests = [test for test in self.tests if test["operation"] == operation]
            best = max(tests, key=lambda test: test["mean"].value)
            count = f"{best['runs']:,} repetition{'' if best['runs'] == 1 else 's'}"
            mean = with_unit(best["mean"].value, _UNIT)
            found.append(f"Highest mean {operation} bandwidth: {mean} ({best['name']}; {count}).")
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
                    [(test["name"], test["operation"], test["quantiles"]) for test in self.tests],
                ),
                about="Boxes of the repetitions: quartiles and median; whiskers from the 5th to "
                "the 95th percentile. With one repetition a line.",
            )
        ]


_TESTS: tuple[Column[Test], ...] = (
    Column("", "Test", "name"),
    *(Column[Test](name, "") for name in ("arm", "operation", "nodes", "set_up")),
    Column("runs", "Runs", unit=""),
    Column("mean_bytes_per_s", "Mean", "mean__value", _UNIT),
    *bounds(_UNIT, "mean"),
    Column("least", "Min", unit=_UNIT),
    Column("most", "Max", unit=_UNIT),
    Column("bytes", "Bytes", unit=Unit.BYTES),
    *(Column[Test](name, "") for name in ("open_s", "io_s", "close_s")),
    Column("total_s", "Total time", unit=Unit.SECONDS),
)
