"""The runs of an experiment: metrics arm by arm, compared run by run, and the list of runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import count
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
from django.utils.safestring import SafeString

from ioportal.changes.comparison_conclusions import by_change
from ioportal.changes.comparison_sentences import sentence
from ioportal.core.charts.palette import MOST_ARMS
from ioportal.core.formatting import significant
from ioportal.experiments.analysis.runs import run_metric
from ioportal.experiments.models import Run
from ioportal.experiments.pages.sections.section import IOR_LABEL, Section, is_of_ior
from ioportal.jobs.analysis.comparison.arms import Arm as ComparedArm
from ioportal.jobs.analysis.comparison.comparing import compare
from ioportal.jobs.analysis.comparison.results import CONFIDENCE, MIN_RUNS, Scale, Verdict
from ioportal.web.common.tables import Column, Table, to
from ioportal.web.templatetags import ioportal as show

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ioportal.experiments.models import Arm
    from ioportal.jobs.analysis.comparison.results import Comparison, Effect
    from ioportal.metrics import Metric

_FEWEST_ARMS = 2
_P = 1 - CONFIDENCE
_SHOWN_RUNS = 100
_OPEN_RUNS = 10


@dataclass(frozen=True)
class ArmRow:
    """The figures of a metric in an arm, and the effect relative to the first arm.

    The first arm has no effect, nor have arms that are not compared.
    """

    arm: Arm
    look: int
    values: np.ndarray[Any, np.dtype[np.float64]]  # known ones
    unknown: int
    metric: Metric
    effect: Effect | None
    is_compared: bool

    @property
    def figures(self) -> tuple[float, float, float, float] | None:
        """Median, mean, least and greatest value."""
        values = self.values
        if not values.size:
            return None
        numbers = (np.median(values), values.mean(), values.min(), values.max())
        return tuple(map(float, numbers))  # type: ignore[return-value]  # four of them

    @property
    def ratio(self) -> str:
        """The ratio of medians with its interval; "" where a median is zero."""
        effect = self.effect
        if effect is None or effect.estimate is None or effect.scale is not Scale.RATIO:
            return ""
        if effect.low is None or effect.high is None:
            return significant(effect.estimate)
        bounds = f"{significant(effect.low)} to {significant(effect.high)}"
        return f"{significant(effect.estimate)} ({bounds})"

    @property
    def conclusion(self) -> str:
        """The conclusion in a sentence."""
        if self.effect:
            return sentence(self.metric, self.effect)
        return "reference" if self.is_compared else "not compared"


def _metrics(runs: Iterable[Run]) -> list[Metric]:
    """Return the metrics of some runs, in order of their names."""
    return [run_metric(name) for name in sorted({name for run in runs for name in run.metrics})]


class Runs(Section):
    """Metrics of all runs, arm by arm."""

    name = "runs"
    title = "Runs"

    @property
    def is_present(self) -> bool:
        """Whether there are runs."""
        return bool(self.page.runs)

    @cached_property
    def _measured(self) -> list[tuple[Arm, list[Run]]]:
        """The runs of each arm; IOR runs only if all did one operation."""
        operations = {run.labels[IOR_LABEL] for run in self.page.runs if is_of_ior(run)}
        if len(operations) <= 1:
            return self.page.runs_by_arm
        return [
            (arm, [run for run in runs if not is_of_ior(run)])
            for arm, runs in self.page.runs_by_arm
        ]

    @cached_property
    def metrics(self) -> list[Metric]:
        """The metrics of the table."""
        return _metrics(run for _, runs in self._measured for run in runs)

    @cached_property
    def _values(self) -> list[tuple[Arm, dict[str, np.ndarray[Any, np.dtype[np.float64]]]]]:
        """The values of each metric in each arm; NaN: unknown."""
        return [
            (
                arm,
                {
                    metric.name: np.array(
                        [run.metrics.get(metric.name, np.nan) for run in runs], float
                    )
                    for metric in self.metrics
                },
            )
            for arm, runs in self._measured
        ]

    @cached_property
    def mixed(self) -> list[str]:
        """What differs between the runs of an arm: scale, and names of labels."""
        mixed = []
        for _, runs in self.page.runs_by_arm:
            finished = [run for run in runs if run.metrics]
            names = {name for run in finished for name in run.labels}
            mixed += [n for n in sorted(names) if len({run.labels.get(n) for run in finished}) > 1]
            if len({run.scale for run in finished}) > 1:
                mixed.append("scale")
        return list(dict.fromkeys(mixed))

    @cached_property
    def comparison(self) -> Comparison | None:
        """The arms compared with the first; None: there are no two to four arms with metrics."""
        if not _FEWEST_ARMS <= len(self.page.arms) <= MOST_ARMS or not self.metrics or self.mixed:
            return None
        arms = []
        first = 0
        for _, values in self._values:
            size = next(iter(values.values())).size
            numbers = np.arange(first, first + size)
            first += size
            arms.append(ComparedArm(values, numbers, numbers, np.zeros(size, int)))
        return compare(arms, [metric.name for metric in self.metrics], are_runs=True)

    @property
    def table(self) -> Iterator[tuple[Metric, list[ArmRow]]]:
        """Yield each metric with a row per arm."""
        for metric in self.metrics:
            compared = self.comparison and self.comparison.metrics[metric.name]
            effects = [None, *compared.effects] if compared else [None] * len(self.page.arms)
            rows = []
            for (arm, values), effect in zip(self._values, effects, strict=True):
                numbers = values[metric.name]
                known = numbers[~np.isnan(numbers)]
                unknown = int(numbers.size - known.size)
                look = self.page.looks[arm.pk]
                is_compared = compared is not None
                rows.append(ArmRow(arm, look, known, unknown, metric, effect, is_compared))
            yield metric, rows

    @cached_property
    def findings(self) -> list[str]:
        """What differs between the arms, and what forbids a comparison."""
        return [*self._events, *self._states, *self._changes]

    @property
    def _events(self) -> list[str]:
        """A warning if the runs did not process the same number of events."""
        counts = {run.events for run in self.page.runs if run.events is not None}
        if len(counts) < 2:  # noqa: PLR2004  (different counts)
            return []
        shown = f"{min(counts):,} to {max(counts):,}"
        return [f"The runs processed different numbers of events ({shown}): compare per event."]

    @property
    def _states(self) -> list[str]:
        """Numbers of runs that did not finish."""
        return [
            f"{arm.name}: {count:,} of {len(runs):,} runs {state}."
            for arm, runs in self.page.runs_by_arm
            for state in (Run.State.FAILED, Run.State.HUNG)
            if (count := sum(run.state == state for run in runs))
        ]

    @property
    def _changes(self) -> list[str]:
        if self.mixed and len(self.page.arms) > 1:
            names = ", ".join(self.mixed)
            return [f"The runs of an arm differ in {names}: arms are not compared as a whole."]
        if self.comparison is None:
            return []
        found = []
        for number, arm in enumerate(self.page.arms[1:]):
            effects = [
                (metric, self.comparison.metrics[metric.name].effects[number])
                for metric in self.metrics
            ]
            if all(effect.verdict is Verdict.REFUSED for _, effect in effects):
                found.append(
                    f"{arm.name} against {self.page.arms[0].name}: no test, as an arm has fewer "
                    f"than {MIN_RUNS} runs. The table shows the ratios."
                )
                continue
            against = f"{arm.name} against {self.page.arms[0].name}"
            found += [f"{against}: {sentence(*pair)}" for pair in by_change(effects)]
            if not any(effect.is_change for _, effect in effects):
                found.append(f"{against}: no confirmed change; see the table.")
        if (tests := self._tests) and any(
            self._least_p(sizes) * len(tests) > _P for sizes in tests
        ):
            found.append(
                f"{len(tests)} tests of so few runs cannot confirm a change, however large it is: "
                f"repeat each arm at least {self._enough_runs(len(tests))} times."
            )
        return found

    @property
    def _tests(self) -> list[tuple[int, int]]:
        """The numbers of runs in each test that was made."""
        return [
            (int(first.values.size), int(row.values.size))
            for _, (first, *others) in self.table
            for row in others
            if row.effect and row.effect.adjusted_p is not None
        ]

    @staticmethod
    def _least_p(sizes: tuple[int, int]) -> float:
        """Return the least p of the exact rank test."""
        return 2 / comb(sum(sizes), sizes[0])

    def _enough_runs(self, tests: int) -> int:
        """Return the number of runs of each arm with which a change can be confirmed."""
        return next(n for n in count(MIN_RUNS) if self._least_p((n, n)) * tests <= _P)

    def tables(self) -> dict[str, Table[Any]]:
        """Return the metrics by arm, and the list of runs."""
        metrics = Table(
            "Metrics by arm",
            _METRICS,
            [row for _, rows in self.table for row in rows],
            is_grouped=True,
            about="Runs are independent: tests compare them one by one. Ratios are of medians, to "
            "the first arm."
            if self.comparison
            else "",
        )
        return {"metrics": metrics, "list": self._list()}

    def _list(self) -> Table[Run]:
        labels = sorted({name for run in self.page.runs for name in run.labels})
        columns: tuple[Column[Run], ...] = (
            Column("run", "Run", "name", link=to("run", "experiment__slug", "pk")),
            Column("arm", "Arm", "arm__name"),
            Column("state", "State", cell=lambda run: run.get_state_display() or "unknown"),
            Column("started_at", "Start"),
            Column("scale", "Scale", unit=""),
            Column("events", "Events", unit=""),
            Column(
                "",
                "Labels",
                lambda run: ", ".join(f"{name}: {text}" for name, text in run.labels.items()),
                css="wrap",
            ),
            *(_item("labels", name, f"label:{name}") for name in labels),
            *(_item("metrics", metric.name, metric.name) for metric in _metrics(self.page.runs)),
        )
        runs = self.page.runs
        return Table("All runs", columns, runs, most=_SHOWN_RUNS, is_folded=len(runs) > _OPEN_RUNS)


def _item(field: str, key: str, name: str) -> Column[Run]:
    return Column(name, "", lambda run: getattr(run, field).get(key))


def _figure(number: int, name: str) -> Column[ArmRow]:
    def value(row: ArmRow) -> float | None:
        return row.figures[number] if row.figures else None

    return Column(
        name,
        name.capitalize(),
        value,
        "",
        cell=lambda row: show.measure(value(row), row.metric.unit),
    )


_METRICS: tuple[Column[ArmRow], ...] = (
    Column("metric", "Metric", "metric__name", cell="metric__title"),
    Column("unit", "", lambda row: str(row.metric.unit)),
    Column("arm", "Arm", "arm__name", cell=lambda row: show.arm(row.arm.name, row.look)),
    Column("runs", "Runs", lambda row: int(row.values.size), ""),
    Column("unknown", ""),
    *(_figure(number, name) for number, name in enumerate(("median", "mean", "min", "max"))),
    Column(
        "ratio",
        "Ratio",
        "effect__estimate",
        "(95 %)",
        cell=lambda row: row.ratio or SafeString(""),
    ),
    Column("low", "", "effect__low"),
    Column("high", "", "effect__high"),
    Column("p", "", "effect__p"),
    Column("adjusted_p", "", "effect__adjusted_p"),
    Column("verdict", "", lambda row: str(row.effect.outcome) if row.effect else None),
    Column(
        "conclusion",
        "Conclusion",
        lambda row: row.conclusion if row.effect else None,
        cell=lambda row: row.conclusion,
        css="wrap",
    ),
)
