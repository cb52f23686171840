"""Access methods: a metric of runs, such as CPU efficiency, by two labels.

Runs are independent, so intervals and tests refer to single runs. Hung and failed runs have no
figures; they are counted next to the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import scipy

from ioportal.experiments.analysis.runs import ARM, LABEL, UNUSABLE, metric_names, usable
from ioportal.jobs.analysis.comparison.effects import holm
from ioportal.jobs.analysis.comparison.results import CONFIDENCE, MIN_RUNS, SHARES
from ioportal.load.analysis.load_ramp import Interval

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    import numpy.typing as npt

    Floats: TypeAlias = npt.NDArray[np.float64]

MIN_CORRELATED = 10  # runs
_EDGE = (1 + CONFIDENCE) / 2
_ALL = "all"
_OTHER = "\N{EN DASH}"  # value of a label that a run lacks


@dataclass(frozen=True)
class Cell:
    """Runs with one value of each of two labels.

    `mean` is None without figures; its bounds are equal to it with one run. `quantiles` are the
    values at 0 %, 1 %, ..., 100 % of the runs; none without figures.
    """

    row: str
    column: str
    count: int  # runs with a figure
    unknown: int  # finished runs without a figure
    failed: int
    hung: int
    mean: Interval | None
    quantiles: tuple[float, ...]


@dataclass(frozen=True)
class Contrast:
    """The difference of the means of a cell and the first cell, in the unit of the metric.

    `p` is Welch's, adjusted for all contrasts (Holm).
    """

    row: str
    column: str
    difference: Interval
    p: float


@dataclass(frozen=True)
class Matrix:
    """A metric by two labels. Combinations without runs have no cell."""

    rows: tuple[str, ...]  # values of the first label, in order of their first run
    columns: tuple[str, ...]
    cells: dict[tuple[str, str], Cell]
    contrasts: tuple[Contrast, ...]  # of cells with at least MIN_RUNS figures
    reference: tuple[str, str] | None  # None: no cell has enough figures


def matrix(runs: pl.DataFrame, metric: str, rows: str, columns: str) -> Matrix:
    """Summarise a metric by two labels.

    The interval of a mean is Student's. Contrasts are Welch's intervals of the difference of
    means to the first cell with enough runs.

    Args:
        runs: see `runs.run_frame`.
        metric: one of its metrics.
        rows: name of a label, or ``arm``.
        columns: name of another label, or ``arm``; "": none.

    Source: docs/experiments.md, "Access methods".
    """
    labelled = runs.select(
        "state",
        row=label_values(rows),
        column=label_values(columns),
        value=pl.col(metric),
    )
    parts = {
        (str(row), str(column)): part
        for (row, column), part in labelled.group_by("row", "column", maintain_order=True)
    }
    values = {
        key: usable(part, "value")["value"].to_numpy().astype(float) for key, part in parts.items()
    }
    all_rows, all_columns = (
        tuple(labelled[name].unique(maintain_order=True)) for name in ("row", "column")
    )
    order = [key for key in product(all_rows, all_columns) if key in parts]
    compared = [key for key in order if values[key].size >= MIN_RUNS]
    return Matrix(
        all_rows,
        all_columns,
        {key: _cell(key, parts[key], values[key]) for key in order},
        _contrasts(compared, values),
        compared[0] if compared else None,
    )


def label_values(label: str) -> pl.Expr:
    """Return the values of a label, or of ``arm``; runs without the label have a dash.

    Args:
        label: its name; "": all runs have the same value.
    """
    if not label:
        return pl.lit(_ALL)
    return pl.col(ARM if label == ARM else f"{LABEL}{label}").fill_null(_OTHER)


def _cell(key: tuple[str, str], runs: pl.DataFrame, values: Floats) -> Cell:
    failed, hung = (runs.filter(state=state).height for state in UNUSABLE)
    return Cell(
        *key,
        count=values.size,
        unknown=runs.height - values.size - failed - hung,
        failed=failed,
        hung=hung,
        mean=mean_interval(values),
        quantiles=tuple(np.quantile(values, np.linspace(0, 1, SHARES)).tolist())
        if values.size
        else (),
    )


def mean_interval(values: Floats) -> Interval | None:
    """Return the mean with Student's interval; None without values."""
    if not values.size:
        return None
    mean, count = float(values.mean()), values.size
    if count == 1:
        return Interval(mean, mean, mean)
    error = float(scipy.stats.t.ppf(_EDGE, count - 1) * values.std(ddof=1) / count**0.5)
    return Interval(mean, mean - error, mean + error)


def _contrasts(
    keys: Sequence[tuple[str, str]], values: dict[tuple[str, str], Floats]
) -> tuple[Contrast, ...]:
    """Return the contrasts of all cells but the first."""
    differences, p_values = [], []
    for key in keys[1:]:
        difference, p = difference_of_means(values[key], values[keys[0]])
        differences.append(difference)
        p_values.append(p)
    return tuple(
        Contrast(*key, difference, p)
        for key, difference, p in zip(keys[1:], differences, holm(p_values), strict=True)
    )


def difference_of_means(values: Floats, reference: Floats) -> tuple[Interval, float]:
    """Return the difference of two means with Welch's interval, and the p-value.

    Args:
        values: shape (n,), at least 2.
        reference: shape (m,), at least 2.
    """
    difference = float(values.mean() - reference.mean())
    if np.ptp(values) == 0 and np.ptp(reference) == 0:
        return Interval(difference, difference, difference), 0.0 if difference else 1.0
    test = scipy.stats.ttest_ind(values, reference, equal_var=False)
    low, high = test.confidence_interval(CONFIDENCE)
    return Interval(difference, float(low), float(high)), float(test.pvalue)


@dataclass(frozen=True)
class Covariate:
    """Spearman's correlation of a metric with another one, within cells."""

    name: str
    count: int
    correlation: Interval


def covariates(runs: pl.DataFrame, metric: str, rows: str, columns: str) -> list[Covariate]:
    """Relate a metric to all other metrics that vary within cells.

    Both are ranked as differences to the medians of their cells, so that differences between the
    cells do not appear as a correlation. The interval is Bonett and Wright's (2000).

    Returns:
        Metrics with at least `MIN_CORRELATED` runs; cpu_s and wall_s do not explain their ratio
        and are left out for ``efficiency_share``.
    """
    derived = {"cpu_s", "wall_s"} if metric == "efficiency_share" else set()
    found = []
    for name in metric_names(runs):
        if name == metric or name in derived:
            continue
        known = usable(usable(runs, metric), name).select(
            row=label_values(rows), column=label_values(columns), value=metric, other=name
        )
        centred = known.select(
            (pl.col(each) - pl.col(each).median().over("row", "column")).alias(each)
            for each in ("value", "other")
        )
        value, other = (centred[each].to_numpy() for each in ("value", "other"))
        if value.size >= MIN_CORRELATED and np.ptp(value) and np.ptp(other):
            found.append(Covariate(name, value.size, spearman(value, other)))
    return sorted(found, key=lambda each: -abs(each.correlation.value))


def spearman(first: Floats, second: Floats) -> Interval:
    """Return Spearman's correlation with the interval of Bonett and Wright (2000).

    Args:
        first: shape (n,), at least 4 values that are not all equal.
        second: shape (n,), values that are not all equal.
    """
    rho = float(scipy.stats.spearmanr(first, second).statistic)
    inside = min(max(rho, -1 + 1e-9), 1 - 1e-9)
    error = scipy.stats.norm.ppf(_EDGE) * np.sqrt((1 + inside**2 / 2) / (first.size - 3))
    low, high = np.tanh(np.arctanh(inside) + np.array([-error, error])).tolist()
    return Interval(rho, low, high)


@dataclass(frozen=True)
class StepTimes:
    """Mean seconds of the steps of the runs of an arm, and the rest of their wall-clock time.

    `rest_s` is None if no run has both steps and ``wall_s``.
    """

    arm: str
    count: int
    seconds: dict[str, float]
    rest_s: float | None


def step_times(steps: pl.DataFrame, runs: pl.DataFrame) -> list[StepTimes]:
    """Return the mean time of each step by arm: stage-in against direct access.

    Args:
        steps: a row per run x step: name (of the run), step, seconds.
        runs: see `runs.run_frame`; failed and hung runs are left out. An arm without steps is
            compared by its whole time.
    """
    finished = runs.filter(~pl.col("state").is_in(UNUSABLE))
    if "wall_s" not in runs.columns:
        finished = finished.with_columns(wall_s=pl.lit(None, pl.Float64))
    order = steps["step"].unique(maintain_order=True).to_list()
    drawn = []
    for (arm,), part in finished.group_by(ARM, maintain_order=True):
        own = steps.join(part.select("name"), on="name")
        sums = dict(own.group_by("step").agg(pl.sum("seconds") / part.height).iter_rows())
        seconds = {name: sums[name] for name in order if name in sums}
        walls = part["wall_s"].drop_nulls().to_numpy()
        rest_s = max(float(walls.mean()) - sum(sums.values()), 0.0) if walls.size else None
        drawn.append(StepTimes(str(arm), part.height, seconds, rest_s))
    return drawn


def default_labels(runs: pl.DataFrame, names: Sequence[str], most: int = 12) -> list[str]:
    """Return labels with several values, in descending order of their number.

    The arm comes last, unless a label divides the runs in the same way.

    Args:
        runs: see `runs.run_frame`.
        names: of its labels.
        most: values of a label; those with more are left out, as are repetitions.
    """
    arms = _count(runs, ARM)
    counts = {name: _count(runs, name) for name in sorted(names) if name != "repetition"}
    several = [name for name, count in counts.items() if 1 < count <= most]
    ordered = sorted(several, key=lambda name: -counts[name])
    is_label = any(counts[name] == arms == _count(runs, name, ARM) for name in several)
    return ordered if is_label or not 1 < arms <= most else [*ordered, ARM]


def _count(runs: pl.DataFrame, *labels: str) -> int:
    """Return the number of combinations of values."""
    columns = [label_values(label).alias(label) for label in labels]
    return runs.select(columns).n_unique() if runs.height else 0
