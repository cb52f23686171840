"""Scaling tests: a metric by the number of nodes, with its fitted growth."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ioportal.core.charts.palette import LOOKS
from ioportal.core.formatting import lowered, significant, with_unit
from ioportal.experiments.analysis.runs import UNUSABLE, run_metric
from ioportal.experiments.analysis.scaling import scaling
from ioportal.experiments.charts import lines
from ioportal.experiments.pages.sections.section import Section, bounds, is_of_ior
from ioportal.web.common.parts import Part
from ioportal.web.common.tables import Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioportal.experiments.analysis.scaling import Growth, Level, Scaling
    from ioportal.experiments.models import Run
    from ioportal.experiments.pages.sections.section import Choice
    from ioportal.metrics import Metric

_FEWEST_SCALES = 2


@dataclass(frozen=True)
class ArmScaling:
    """An arm: its runs with a scale and a value, and their analysis."""

    name: str
    runs: list[Run]
    values: list[float]
    scaling: Scaling


class ScalingTests(Section):
    """Scaling tests of all arms."""

    name = "scaling"
    title = "Scaling"

    @cached_property
    def _runs(self) -> list[Run]:
        return [
            run
            for run in self.page.runs
            if (run.scale or 0) > 0 and run.state not in UNUSABLE and not is_of_ior(run)
        ]

    @property
    def is_present(self) -> bool:
        """Whether runs have different scales."""
        return len({run.scale for run in self._runs}) >= _FEWEST_SCALES and bool(self._metrics)

    @cached_property
    def _metrics(self) -> list[str]:
        """Metrics of runs with a scale, times first."""
        names = {name for run in self._runs for name, value in run.metrics.items() if value > 0}
        return sorted(names, key=lambda name: (not name.endswith("_s"), name))

    @cached_property
    def choices(self) -> list[Choice]:
        """The metric."""
        options = [(name, run_metric(name).title) for name in self._metrics]
        return [
            self.choice("scaling_metric", "Metric", options, self._metrics[0]),
        ]

    @property
    def metric(self) -> Metric:
        """The selected metric."""
        return run_metric(self.choices[0].selected)

    @cached_property
    def arms(self) -> list[ArmScaling]:
        """The arms with values above 0."""
        found = []
        scaled = {run.pk for run in self._runs}
        for arm, all_runs in self.page.runs_by_arm:
            runs = [
                run
                for run in all_runs
                if run.pk in scaled and run.metrics.get(self.metric.name, 0) > 0
            ]
            if runs:
                values = [run.metrics[self.metric.name] for run in runs]
                scales = np.array([run.scale for run in runs], float)
                found.append(ArmScaling(arm.name, runs, values, scaling(scales, np.array(values))))
        return found

    @cached_property
    def findings(self) -> list[str]:
        """The growth of each arm, and outliers."""
        return [*(self._growth(arm) for arm in self.arms), *self._outliers()]

    def _growth(self, arm: ArmScaling) -> str:
        name, levels = lowered(self.metric.title), arm.scaling.levels
        growth = arm.scaling.growth
        if growth is None:
            return f"{arm.name}: no growth of {name} fitted. {arm.scaling.refusal}"
        first, last = levels[0], levels[-1]
        constant = with_unit(growth.constant, self.metric.unit)
        part = f"the part beyond a constant {constant}" if growth.constant > 0 else "it"
        times = f"{significant(last.mean.value / first.mean.value)}\N{MULTIPLICATION SIGN}"
        return (
            f"{arm.name}: {name} changes {times}, from {self._value(first)} to "
            f"{self._value(last)}; {part} grows {_comparison(growth)}, as "
            f"nodes^{growth.exponent:.2f} ({_interval(growth)})."
        )

    def _value(self, level: Level) -> str:
        nodes = f"{level.scale:,g} node{'' if level.scale == 1 else 's'}"
        return f"{with_unit(level.mean.value, self.metric.unit)} with {nodes}"

    def _outliers(self) -> Iterator[str]:
        for arm in self.arms:
            medians = {level.scale: level.median for level in arm.scaling.levels}
            for at in arm.scaling.outliers:
                run = arm.runs[at]
                yield (
                    f"{arm.name}: {run.name} is an outlier with "
                    f"{with_unit(arm.values[at], self.metric.unit)} (median with {run.scale:,g} "
                    f"nodes: {with_unit(medians[run.scale or 0], self.metric.unit)})."
                )

    def charts(self) -> list[Part[Any]]:
        """Return the values by scale."""
        series = [
            (
                arm.name,
                LOOKS[number % len(LOOKS)],
                arm.scaling,
                [
                    (run.scale or 0.0, value, run.name)
                    for run, value in zip(arm.runs, arm.values, strict=True)
                ],
            )
            for number, arm in enumerate(self.arms)
        ]
        metric = self.metric
        return [
            Part(
                f"{metric.title} by number of nodes",
                (
                    Column[dict[str, Any]]("arm", "Arm"),
                    Column("nodes", "Nodes", "scale", "", form="{:,g}".format),
                    Column("runs", "Runs", "count", ""),
                    Column("mean", "Mean", "mean__value", metric.unit),
                    *bounds(metric.unit, "mean"),
                    Column("median", "Median", unit=metric.unit),
                    Column("unit", "", lambda _: str(metric.unit)),
                ),
                [
                    {"arm": arm.name, **vars(level)}
                    for arm in self.arms
                    for level in arm.scaling.levels
                ],
                "scaling",
                lines.by_scale((metric.title, str(metric.unit)), series),
                about="Dots are single runs, crosses outliers. The line is the fit a + b n^c "
                "without outliers, the band its 95 % interval.",
            )
        ]

    def tables(self) -> dict[str, Table[Any]]:
        """Return the fits."""
        columns: tuple[Column[ArmScaling], ...] = (
            Column("arm", "Arm", "name"),
            Column("constant", "Constant a", "scaling__growth__constant", self.metric.unit),
            Column("factor", "Factor b", "scaling__growth__factor", ""),
            Column("exponent", "Exponent c", "scaling__growth__exponent", ""),
            Column(
                "low",
                "Interval of the exponent",
                "scaling__growth__low",
                cell=lambda arm: (
                    _interval(arm.scaling.growth) if arm.scaling.growth else arm.scaling.refusal
                ),
                css="wrap",
            ),
            Column("high", "", "scaling__growth__high"),
            Column("refusal", "", "scaling__refusal"),
        )
        return {"growth": Table("Fitted growth a + b n^c", columns, self.arms)}


def _comparison(growth: Growth) -> str:
    if growth.is_less_than_proportional:
        return "less than in proportion to the nodes"
    if growth.is_more_than_proportional:
        return "more than in proportion to the nodes"
    return "with the nodes, perhaps in proportion to them"


def _interval(growth: Growth) -> str:
    if growth.low is None and growth.high is None:
        return "95 % interval: unknown"
    if growth.low is None:
        return f"95 % interval: at most {growth.high:.2f}"
    if growth.high is None:
        return f"95 % interval: at least {growth.low:.2f}"
    return f"95 % interval: {significant(growth.low)} to {significant(growth.high)}"
