"""Access methods: a metric, such as CPU efficiency, by two labels of the runs."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from ioportal.core.formatting import lowered, p_value, signed, with_unit
from ioportal.core.units import Unit
from ioportal.experiments.analysis import access_methods
from ioportal.experiments.analysis.runs import label_names, metric_names, run_metric, titled
from ioportal.experiments.charts import bars
from ioportal.experiments.pages.sections.section import Section, bounds, frame, is_of_ior
from ioportal.jobs.analysis.comparison.results import CONFIDENCE
from ioportal.web.common.parts import Part
from ioportal.web.common.tables import Column, Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from ioportal.experiments.analysis.access_methods import (
        Cell,
        Contrast,
        Covariate,
        Matrix,
        StepTimes,
    )
    from ioportal.experiments.pages.sections.section import Choice
    from ioportal.metrics import Metric

_EFFICIENCY = "efficiency_share"
_NONE = ("", "none")
_BOX = (5, 25, 50, 75, 95)


class AccessMethods(Section):
    """A matrix of a metric over two labels, distributions, steps and covariates."""

    name = "access"
    title = "Access methods"

    @cached_property
    def _frame(self) -> pl.DataFrame:
        runs = self.page.runs
        return frame(run for run in runs if not is_of_ior(run) and not run.counters)

    @cached_property
    def _labels(self) -> list[str]:
        return access_methods.default_labels(self._frame, label_names(self._frame))

    @cached_property
    def _metrics(self) -> list[str]:
        """The metrics, CPU efficiency first."""
        return sorted(metric_names(self._frame), key=lambda name: (name != _EFFICIENCY, name))

    @property
    def is_present(self) -> bool:
        """Whether runs have an efficiency or steps, and differ in a label."""
        return (
            bool(self._labels)
            and bool(self._metrics)
            and (_EFFICIENCY in self._metrics or not self._steps.is_empty())
        )

    @cached_property
    def choices(self) -> list[Choice]:
        """The metric, and the labels of rows and columns."""
        metrics = [(name, run_metric(name).title) for name in self._metrics]
        labels = [(name, titled(name)) for name in self._labels]
        rows = self.choice("rows", "Rows", labels, self._labels[0])
        others = [*(label for label in labels if label[0] != rows.selected), _NONE]
        return [
            self.choice("access_metric", "Metric", metrics, self._metrics[0]),
            rows,
            self.choice("columns", "Columns", others, others[0][0]),
        ]

    @property
    def metric(self) -> Metric:
        """The selected metric."""
        return run_metric(self.choices[0].selected)

    @property
    def row_label(self) -> str:
        """The label of the rows."""
        return self.choices[1].selected

    @property
    def column_label(self) -> str:
        """The label of the columns."""
        return self.choices[2].selected

    @cached_property
    def matrix(self) -> Matrix:
        """The metric by both labels."""
        return access_methods.matrix(
            self._frame, self.metric.name, self.row_label, self.column_label
        )

    @cached_property
    def findings(self) -> list[str]:
        """The largest difference."""
        return [self._contrast_sentence()] if self.matrix.contrasts else []

    @property
    def _title(self) -> str:
        return lowered(self.metric.title)

    def place(self, cell: Cell | Contrast) -> str:
        """Return the values of the labels."""
        return cell.row if self.column_label == "" else f"{cell.row}, {cell.column}"

    def _text(self, value: float) -> str:
        return with_unit(value, self.metric.unit)

    @property
    def reference(self) -> str:
        """The place of the first cell with enough runs."""
        place = self.matrix.reference or ()
        return ", ".join(place if self.column_label else place[:1])

    def _contrast_sentence(self) -> str:
        contrast = max(self.matrix.contrasts, key=lambda each: abs(each.difference.value))
        place = self.place(contrast)
        reference = self.reference
        return (
            f"Largest difference to {reference}: {place}, {self.difference_text(contrast)}, "
            f"{'significant' if contrast.p < 1 - CONFIDENCE else 'not significant'}."
        )

    def difference_text(self, contrast: Contrast) -> str:
        """Return a difference with its interval; of shares in percentage points."""
        each = contrast.difference
        values = (each.value, each.low, each.high)
        if self.metric.unit is Unit.SHARE:
            value, low, high = (signed(100 * value, ".1f") for value in values)
            return f"{value} percentage points ({low} to {high})"
        value, low, high = (f"{signed(value, '.3g')}" for value in values)
        unit = "" if self.metric.unit is Unit.RATIO else f" {self.metric.unit}"
        return f"{value}{unit} ({low} to {high})"

    @cached_property
    def _steps(self) -> pl.DataFrame:
        rows = [
            (run.name, step["name"], step["seconds"])
            for run in self.page.runs
            for step in run.steps
        ]
        return pl.DataFrame(rows, schema=["name", "step", "seconds"], orient="row")

    def charts(self) -> list[Part[Any]]:
        """Return the matrix, the distributions and the steps."""
        parts = [self._heat_map(), self._distributions()]
        if not self._steps.is_empty():
            parts.append(_step_chart(access_methods.step_times(self._steps, self._frame)))
        return parts

    def _heat_map(self) -> Part[Any]:
        metric, matrix = self.metric, self.matrix
        grid = [
            [matrix.cells.get((row, column)) for column in matrix.columns] for row in matrix.rows
        ]
        values = [[cell.mean.value if cell and cell.mean else None for cell in row] for row in grid]
        texts = [[self._cell_text(cell) for cell in row] for row in grid]
        form = "~%" if metric.unit is Unit.SHARE else ".3~s"
        labels = (self.row_label, self.column_label)
        names = (titled(self.row_label), titled(self.column_label))
        return Part(
            f"Mean {self._title} by " + " and ".join(filter(None, labels)),
            self._cell_columns(),
            list(matrix.cells.values()),
            "access-matrix",
            bars.heat_map(
                names,
                matrix.rows,
                matrix.columns,
                values,
                texts=texts,
                quantity=(metric.title, form),
                bounds=(0, 1) if metric.unit is Unit.SHARE else None,
            ),
            has_figure=any(cell.count for cell in matrix.cells.values()),
            about="Means of finished runs. Failed and hung runs are counted in the table.",
        )

    def _cell_text(self, cell: Cell | None) -> str:
        return f"{self._text(cell.mean.value)}<br>n = {cell.count}" if cell and cell.mean else ""

    def _cell_columns(self) -> tuple[Column[Cell], ...]:
        return (
            *self._places("Runs of"),
            Column("runs", "Runs", "count", ""),
            Column("unknown", ""),
            Column("failed", "Failed", unit=""),
            Column("hung", "Hung", unit=""),
            Column("mean", "Mean", "mean__value", self.metric.unit),
            *bounds(self.metric.unit, "mean"),
        )

    def _places(self, title: str) -> tuple[Column[Any], ...]:
        return Column("", title, self.place), Column("row", ""), Column("column", "")

    @cached_property
    def _known(self) -> list[Cell]:
        """The cells with a figure."""
        return [cell for cell in self.matrix.cells.values() if cell.count]

    def _distributions(self) -> Part[Any]:
        metric, cells = self.metric, self._known
        boxes = [
            (self.place(cell), cell.column, [cell.quantiles[at] for at in _BOX]) for cell in cells
        ]
        return Part(
            f"Distribution of {self._title}",
            (
                *self._places("Runs of"),
                Column("runs", "Runs", "count", ""),
                Column("mean", "Mean", "mean__value", metric.unit),
                *(_quantile(at, metric.unit) for at in _BOX),
            ),
            cells,
            "access-distributions",
            bars.box_plot((metric.title, str(metric.unit)), boxes) if cells else {},
            about="Boxes: quartiles and median; whiskers from the 5th to the 95th percentile.",
        )

    def tables(self) -> dict[str, Table[Any]]:
        """Return the contrasts and the covariates."""
        contrasts: tuple[Column[Contrast], ...] = (
            *self._places("Runs"),
            Column("difference", "Difference", "difference__value", cell=self.difference_text),
            Column("low", "", "difference__low"),
            Column("high", "", "difference__high"),
            Column("adjusted_p", "p", "p", "", form=p_value),
        )
        return {
            "contrasts": Table(
                f"Differences to {self.reference}",
                contrasts,
                self.matrix.contrasts,
                about="Differences of means with 95 % intervals (Welch). p is corrected for all "
                "rows (Holm).",
            ),
            "covariates": Table(
                "Correlations within cells",
                _COVARIATES,
                access_methods.covariates(
                    self._frame, self.metric.name, self.row_label, self.column_label
                ),
                about=f"Spearman's correlation with {self.metric.title} among the runs of each "
                "cell. An interval without 0 is evidence of a relation, not of a cause.",
            ),
        }


def _quantile(at: int, unit: Unit) -> Column[Cell]:
    return Column(f"p{at}", f"p{at}", lambda cell: cell.quantiles[at], unit)


_COVARIATES: tuple[Column[Covariate], ...] = (
    Column("metric", "Metric", lambda row: run_metric(row.name).title),
    Column("runs", "Runs", "count", ""),
    Column("correlation", "Correlation", "correlation__value", "", form="{:.2f}".format),
    *bounds(Unit.RATIO, "correlation"),
)


def _step_chart(arms: list[StepTimes]) -> Part[Any]:
    names = list(dict.fromkeys(name for arm in arms for name in arm.seconds))
    return Part(
        "Mean time of the steps",
        (
            Column("arm", "Arm"),
            Column("runs", "Runs", "count", ""),
            *(Column(f"{name}_s", name, _seconds_of(name), "s") for name in names),
            Column("rest_s", "Rest", unit="s"),
        ),
        arms,
        "access-steps",
        bars.steps(arms, names),
        about="Stage-in takes steps before the run reads; direct access has none. The rest is the "
        "wall-clock time without the steps.",
    )


def _seconds_of(name: str) -> Callable[[StepTimes], float | None]:
    return lambda arm: arm.seconds.get(name)
