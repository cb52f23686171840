"""The table of a comparison: cells of the page, and values of the export."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ioportal.changes.comparison_sentences import sentence
from ioportal.core import formatting
from ioportal.jobs.analysis.comparison.results import Scale

if TYPE_CHECKING:
    from ioportal.jobs.analysis.comparison.results import ArmFigures, Effect
    from ioportal.metrics import Metric
    from ioportal.web.comparisons.arms import Arm

_MINUS = "\N{MINUS SIGN}"
HEADER = (
    "metric",
    "unit",
    "arm",
    "jobs",
    "unknown",
    "days",
    "median",
    "mean",
    "p90",
    "unweighted_median",
    "unweighted_mean",
    "unweighted_p90",
    "scale",
    "estimate",
    "low",
    "high",
    "p",
    "adjusted_p",
    "cliffs_delta",
    "smallest_detectable",
    "verdict",
    "refusal",
    "sentence",
    "controlled_estimate",
    "controlled_low",
    "controlled_high",
    "controlled_adjusted_p",
    "controlled_verdict",
)


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
    """One arm in the table of a metric; the first arm has no effect."""

    arm: Arm
    figures: ArmFigures
    cells: EffectCells | None


def effect_values(metric: Metric, effect: Effect | None, *, is_contrast: bool) -> list[Any]:
    """Return the values of an effect in the export; None for the first arm."""
    if effect is None:
        return [None] * 11
    return [
        *(str(effect.scale), effect.estimate, effect.low, effect.high),
        *(effect.p, effect.adjusted_p, effect.delta, effect.smallest),
        str(effect.outcome),
        str(effect.refusal) if effect.refusal else None,
        sentence(metric, effect, is_contrast=is_contrast),
    ]


def controlled_values(effect: Effect | None) -> list[Any]:
    """Return the values of an effect relative to the control's."""
    if effect is None:
        return [None] * 5
    return [effect.estimate, effect.low, effect.high, effect.adjusted_p, str(effect.outcome)]
