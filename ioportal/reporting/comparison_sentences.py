"""Results of comparisons in plain sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ioportal.analysis.comparison.results import (
    CONFIDENCE,
    MIN_DAYS,
    MIN_JOBS,
    MIN_RUNS,
    Refusal,
    Scale,
    Verdict,
)
from ioportal.analysis.populations import MIN_GROUP
from ioportal.reporting.formatting import percent, significant, with_unit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ioportal.analysis.comparison.results import ArmSummary, Comparison, Effect
    from ioportal.analysis.metrics import Metric

_TIMES = 1.5  # ratios from here on are factors, smaller ones percentages
_UNEQUAL = 0.1  # difference of shares from which arms are out of balance
_FEW_MATCHED = 0.8  # share of jobs in common strata below which it is reported
_MOST = 0.5  # share of one user's jobs above which it is reported
_REFUSALS = {
    Refusal.NO_VALUES: "no known values in an arm",
    Refusal.FEW_JOBS: f"fewer than {MIN_JOBS} jobs with a known value in an arm",
    Refusal.FEW_DAYS: f"fewer than {MIN_DAYS} days with a similar number of jobs in an arm",
    Refusal.FEW_RUNS: f"fewer than {MIN_RUNS} runs in an arm",
    Refusal.NO_SHARED_STRATUM: "the arms have no stratum in common",
    Refusal.HIDDEN: f"other users' jobs are shown only in groups of {MIN_GROUP} or more",
}


def sentence(metric: Metric, effect: Effect, *, is_controlled: bool = False) -> str:
    """Return the conclusion about a metric, such as "Opens fell 4.1x (3.7 to 4.5)".

    Args:
        metric: the metric.
        effect: effect of an arm.
        is_controlled: whether the effect is relative to the control's.
    """
    relative = " relative to the control" if is_controlled else ""
    within = f"within \u00b1 {percent(effect.margin, 0)} % at {percent(CONFIDENCE, 0)} %"
    if effect.refusal:
        return f"{metric.title}: no conclusion, {_REFUSALS[effect.refusal]}."
    if effect.verdict is Verdict.CHANGED:
        suffix = f", {within}" if effect.is_within_margin else ""
        return f"{metric.title} {_change(metric, effect)}{relative}{suffix}."
    if effect.verdict is Verdict.EQUIVALENT:
        return f"{metric.title}: {within}{relative}."
    return f"{metric.title}: no detectable change{relative}{_smallest(metric, effect)}."


def _change(metric: Metric, effect: Effect) -> str:
    value, low, high = (bound or 0.0 for bound in (effect.estimate, effect.low, effect.high))
    if effect.scale is Scale.DIFFERENCE:
        verb = "rose" if value > 0 else "fell"
        bounds = sorted((abs(low), abs(high)))
        return f"{verb} by {_interval(abs(value), bounds, lambda v: with_unit(v, metric.unit))}"
    verb, factor = ("rose", value) if value > 1 else ("fell", 1 / value)
    if factor >= _TIMES:
        bounds = [low, high] if value > 1 else [1 / high, 1 / low]
        return f"{verb} {_interval(factor, bounds, _times, significant)}"
    bounds = sorted((abs(low - 1), abs(high - 1)))
    return f"{verb} {_interval(abs(value - 1), bounds, _percent)}"


def _interval(
    value: float,
    bounds: Sequence[float],
    write: Callable[[float], str],
    write_bound: Callable[[float], str] | None = None,
) -> str:
    low, high = map(write_bound or write, bounds)
    return f"{write(value)} ({low} to {high})"


def _times(value: float) -> str:
    return f"{significant(value)}\u00d7"


def _percent(share: float) -> str:
    return f"{percent(share)} %"


def _smallest(metric: Metric, effect: Effect) -> str:
    if effect.smallest is None:
        return ""
    if effect.scale is Scale.DIFFERENCE:
        size = with_unit(effect.smallest, metric.unit)
    else:
        factor = 1 + effect.smallest
        size = _times(factor) if factor >= _TIMES else _percent(effect.smallest)
    return f"; {size} would have been seen"


def cautions(
    result: Comparison, names: Sequence[str], metrics: Mapping[str, Metric], strata: str
) -> Iterator[str]:
    """Yield warnings about the arms of a comparison.

    Args:
        result: the comparison.
        names: names of the arms; names of control arms follow if there are any.
        metrics: definitions of the metrics by name.
        strata: what divides jobs into strata, such as 'node counts'.
    """
    for name, arm in zip(names, (*result.arms, *result.control_arms), strict=True):
        yield from _of_arm(name, arm, strata)
    for metric, row in result.metrics.items():
        for name, figures in zip(names, (*row.arms, *row.control_arms), strict=True):
            if drift := figures.drift:
                change = f" by {100 * drift.change:+,.0f} %" if drift.change is not None else ""
                yield f"{metrics[metric].title} drifted{change} over the days of {name}."


def _of_arm(name: str, arm: ArmSummary, strata: str) -> Iterator[str]:
    if not arm.jobs:
        return
    if arm.imbalance >= _UNEQUAL:
        yield (
            f"The {strata} of {name} differ from the first arm, by up to "
            f"{_percent(arm.imbalance)} of the jobs. Weights make them equal."
        )
    if arm.matched < _FEW_MATCHED:
        yield (
            f"Only {_percent(arm.matched)} of the jobs of {name} have {strata} that all arms have. "
            "The others are left out."
        )
    if arm.users != 1 and (arm.largest_user_share or 0) > _MOST:
        yield f"{_percent(arm.largest_user_share or 0)} of the jobs of {name} are of one user."
