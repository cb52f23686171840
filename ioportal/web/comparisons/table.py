"""The tables of a comparison: the metrics arm by arm, and their effects beyond a control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.safestring import SafeString

from ioportal.changes.comparison_sentences import sentence
from ioportal.core import formatting
from ioportal.jobs.analysis.comparison.results import Scale
from ioportal.web.common.tables import Column, follow
from ioportal.web.templatetags import ioportal as show

if TYPE_CHECKING:
    from typing import TypeAlias

    from ioportal.jobs.analysis.comparison.results import ArmFigures, Effect
    from ioportal.metrics import Metric
    from ioportal.web.comparisons.arms import Arm

    Effects: TypeAlias = "tuple[EffectCells, EffectCells, EffectCells]"  # own, control, beyond it

_MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class EffectCells:
    """The cells of an effect of an arm in the table."""

    arm: Arm
    metric: Metric
    effect: Effect
    is_contrast: bool = False  # see `comparison_sentences.sentence`

    @property
    def estimate(self) -> str:
        """Ratio, or difference with its sign."""
        return self._text(self.effect.estimate)

    @property
    def interval(self) -> str:
        """Bounds of the 95 % interval."""
        bounds = (self.effect.low, self.effect.high)
        return formatting.UNKNOWN if None in bounds else " to ".join(map(self._text, bounds))

    def _text(self, value: float | None) -> str:
        if value is None or self.effect.scale is Scale.RATIO:
            return formatting.UNKNOWN if value is None else formatting.significant(value)
        return f"{_MINUS if value < 0 else '+'}{formatting.human(abs(value), self.metric.unit)}"

    @property
    def adjusted_p(self) -> str:
        """The adjusted p-value, at least 0.001."""
        p = self.effect.adjusted_p
        return formatting.UNKNOWN if p is None else formatting.p_value(p)

    @property
    def delta(self) -> str:
        """Cliff's delta."""
        delta = self.effect.delta
        return formatting.UNKNOWN if delta is None else formatting.signed(delta, ".2f")

    @property
    def sentence(self) -> str:
        """The conclusion."""
        return sentence(self.metric, self.effect, is_contrast=self.is_contrast)

    @property
    def is_change(self) -> bool:
        """Whether a change is detected and not negligible."""
        return self.effect.is_change


@dataclass(frozen=True)
class ArmRow:
    """One arm in the table of a metric; the first arm has no effects."""

    metric: Metric
    arm: Arm
    figures: ArmFigures
    cells: EffectCells | None
    controlled: Effect | None  # relative to the control's


def _figure(name: str, title: str) -> Column[ArmRow]:
    def measure(row: ArmRow) -> str:
        return show.measure(getattr(row.figures, name), row.metric.unit)

    return Column(name, title, f"figures__{name}", "", cell=measure)


def _unweighted(name: str) -> Column[ArmRow]:
    return Column(
        f"unweighted_{name}", "", lambda row: getattr(row.figures.raw or row.figures, name)
    )


def _effect(name: str, title: str, path: str, *, text: str, unit: str = "") -> Column[ArmRow]:
    return Column(
        name,
        title,
        f"cells__effect__{path}",
        unit,
        cell=lambda row: getattr(row.cells, text) if row.cells else SafeString(""),
    )


def _text(name: str, title: str, path: str) -> Column[ArmRow]:
    """Return a column of the texts of enumerated values."""

    def text(row: ArmRow) -> str | None:
        value = follow(row, path)
        return None if value is None else str(value)

    return Column(name, title, text)


COLUMNS: tuple[Column[ArmRow], ...] = (
    Column(
        "metric",
        "Metric",
        "metric__name",
        cell="metric__title",
        hint=lambda row: f"{row.metric.formula} ({row.metric.source})",
    ),
    _text("unit", "", "metric__unit"),
    Column("arm", "Arm", "arm__name", cell=lambda row: show.arm(row.arm.name, row.arm.colour)),
    Column("jobs", "Jobs", "figures__jobs", ""),
    Column("unknown", "", "figures__unknown"),
    Column("days", "Days", "figures__days", ""),
    *map(_figure, ("median", "mean", "p90"), ("Median", "Mean", "p90")),
    *map(_unweighted, ("median", "mean", "p90")),
    _text("scale", "", "cells__effect__scale"),
    _effect("estimate", "Ratio", "estimate", text="estimate", unit="of medians"),
    _effect("low", "95 % interval", "low", text="interval"),
    Column("high", "", "cells__effect__high"),
    Column("p", "", "cells__effect__p"),
    _effect("adjusted_p", "Adjusted p", "adjusted_p", text="adjusted_p"),
    _effect("cliffs_delta", "Cliff's δ", "delta", text="delta"),
    Column("smallest_detectable", "", "cells__effect__smallest"),
    _text("verdict", "", "cells__effect__outcome"),
    Column(
        "refusal",
        "",
        lambda row: (
            str(row.cells.effect.refusal) if row.cells and row.cells.effect.refusal else None
        ),
    ),
    Column(
        "sentence",
        "Conclusion",
        "cells__sentence",
        cell=lambda row: row.cells.sentence if row.cells else "reference",
        css=lambda row: "wrap changed" if row.cells and row.cells.is_change else "wrap",
    ),
    Column("controlled_estimate", "", "controlled__estimate"),
    Column("controlled_low", "", "controlled__low"),
    Column("controlled_high", "", "controlled__high"),
    Column("controlled_adjusted_p", "", "controlled__adjusted_p"),
    _text("controlled_verdict", "", "controlled__outcome"),
)


def _beyond(name: str, title: str, unit: str = "") -> Column[Effects]:
    return Column(name, title, lambda row: getattr(row[2], name), unit)


CONTROLLED: tuple[Column[Effects], ...] = (
    Column("metric", "Metric", lambda row: row[0].metric.title),
    Column("arm", "Arm", lambda row: row[0].arm.name),
    Column("own", "Arm", lambda row: row[0].estimate, "ratio"),
    Column("control", "Control", lambda row: row[1].estimate, "ratio"),
    _beyond("estimate", "Beyond the control", "ratio"),
    _beyond("interval", "95 % interval"),
    _beyond("adjusted_p", "Adjusted p"),
)
