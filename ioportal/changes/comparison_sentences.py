"""Results of comparisons in plain sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ioportal.core.formatting import lowered, percent, signed, significant, with_unit
from ioportal.jobs.analysis import anonymity
from ioportal.jobs.analysis.comparison.results import (
    CONFIDENCE,
    MAX_OVERLAP,
    MIN_DAYS,
    MIN_JOBS,
    MIN_MATCHED,
    MIN_RUNS,
    Outcome,
    Refusal,
    Scale,
    Verdict,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ioportal.jobs.analysis.comparison.results import ArmSummary, Comparison, Effect
    from ioportal.metrics import Metric

_X = "\N{MULTIPLICATION SIGN}"
TIMES = 1.5  # ratios from here on are factors, smaller ones percentages
_USELESS = 100  # smallest detectable effect: larger than any expectation
_UNEQUAL = 0.1  # difference of shares from which arms are out of balance
_FEW_MATCHED = 0.8  # share of jobs in common strata below which it is reported
_LEAST_DRIFT = 0.03  # share of the level; a smaller drift is not reported
_MOST = 0.5  # share of one user's jobs above which it is reported
_REFUSALS = {
    Refusal.NO_VALUES: "no known values in an arm",
    Refusal.FEW_JOBS: f"fewer than {MIN_JOBS} jobs with a known value in an arm",
    Refusal.FEW_DAYS: f"fewer than {MIN_DAYS} days with a similar number of jobs in an arm",
    Refusal.FEW_RUNS: f"fewer than {MIN_RUNS} runs in an arm",
    Refusal.NO_SHARED_STRATUM: "the arms have no stratum in common",
    Refusal.FEW_MATCHED: f"less than {MIN_MATCHED:.0%} of an arm is in strata that all arms have",
    Refusal.OVERLAP: f"more than {MAX_OVERLAP:.0%} of an arm is also in the first arm",
    Refusal.REDEFINED: "a server upgrade in this time changed what is counted as an open",
    Refusal.HIDDEN: lowered(anonymity.HIDDEN),
}


def sentence(metric: Metric, effect: Effect, *, is_contrast: bool = False) -> str:
    """Return the conclusion about a metric, such as "Opens fell 4.1x (3.7 to 4.5)".

    Args:
        metric: the metric.
        effect: effect of an arm.
        is_contrast: whether the arms are different jobs, instead of one population over time.
    """
    separator = " " if effect.verdict is Verdict.CHANGED and not is_contrast else ": "
    return f"{metric.title}{separator}{conclusion(metric, effect, is_contrast=is_contrast)}."


def conclusion(metric: Metric, effect: Effect, *, is_contrast: bool = False) -> str:
    """Return the conclusion about a metric without its title, such as "fell 4.1x (3.7 to 4.5)".

    Args:
        metric: the metric.
        effect: effect of an arm.
        is_contrast: whether the arms are different jobs.
    """
    within = f"within \u00b1 {percent(effect.margin, 0)} % at {percent(CONFIDENCE, 0)} %"
    noun = noun_of(is_contrast=is_contrast)
    smallest = smallest_in_words(metric, effect)
    change = ""
    if effect.outcome in {Outcome.CHANGED, Outcome.POSSIBLE}:
        change = change_in_words(metric, effect, is_contrast=is_contrast)
    texts = {
        Outcome.REFUSED: f"no conclusion, {_REFUSALS[effect.refusal] if effect.refusal else ''}",
        Outcome.CHANGED: f"{change}, {within}" if effect.is_within_margin else change,
        Outcome.EQUIVALENT: within,
        Outcome.SHIFTED: f"the values differ, but a {noun} of the median is not confirmed",
        Outcome.POSSIBLE: f"possibly {change}, not confirmed by the test",
        Outcome.UNKNOWN: f"unknown; only a {noun} of {smallest} would have been seen"
        if (effect.smallest or 0) < _USELESS
        else "unknown; the days of an arm differ too much",
        Outcome.NOT_DETECTED: f"no detectable {noun}"
        + (f"; {smallest} would have been seen" if smallest else ""),
    }
    return texts[effect.outcome]


def noun_of(*, is_contrast: bool) -> str:
    """Return what an effect is called."""
    return "difference" if is_contrast else "change"


def change_in_words(metric: Metric, effect: Effect, *, is_contrast: bool = False) -> str:
    """Return a change or a contrast: "fell 4.1x (3.7 to 4.5)", "4.1x lower (3.7 to 4.5)"."""
    value, low, high = (bound or 0.0 for bound in (effect.estimate, effect.low, effect.high))
    is_difference = effect.scale is Scale.DIFFERENCE
    is_higher = value > (0 if is_difference else 1)
    if is_difference:
        sizes = (abs(value), *sorted((abs(low), abs(high))))
        size, first, last = (with_unit(each, metric.unit) for each in sizes)
        interval = f"({first} to {last})"
    elif (factor := value if is_higher else 1 / value) >= TIMES:
        bounds = [low, high] if is_higher else [1 / high, 1 / low]
        size, interval = _interval(factor, bounds, significant, (_X, ""))
    else:
        bounds = sorted((abs(low - 1), abs(high - 1)))
        size, interval = _interval(abs(value - 1), bounds, _percent_digits, (" %", " %"))
    if is_contrast:
        return f"{size} {'higher' if is_higher else 'lower'} {interval}"
    return f"{'rose' if is_higher else 'fell'}{' by' if is_difference else ''} {size} {interval}"


def _interval(
    value: float,
    bounds: Sequence[float],
    write: Callable[[float, int], str],
    units: tuple[str, str],
) -> tuple[str, str]:
    """Return a value, and its bounds in brackets, with another digit if all look the same.

    Args:
        value: the value.
        bounds: its bounds, the lower first.
        write: writes a number with a number of additional digits.
        units: the suffix of the value, and of each bound.
    """
    unit, unit_of_bounds = units
    for more in (0, 1):
        text, low, high = (write(each, more) for each in (value, *bounds))
        if not text == low == high:
            return f"{text}{unit}", f"({low}{unit_of_bounds} to {high}{unit_of_bounds})"
    return f"{write(value, 0)}{unit}", "(\u00b1 <0.1 %)"


def _percent_digits(share: float, more: int) -> str:
    return percent(share, 1 + more)


def _percent(share: float) -> str:
    return f"{percent(share)} %"


def smallest_in_words(metric: Metric, effect: Effect) -> str:
    """Return the smallest effect that would have been seen; "": unknown."""
    if effect.smallest is None:
        return ""
    if effect.scale is Scale.DIFFERENCE:
        return with_unit(effect.smallest, metric.unit)
    factor = 1 + effect.smallest
    return f"{significant(factor)}{_X}" if factor >= TIMES else _percent(effect.smallest)


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
            drift = figures.drift
            if drift and (drift.change is None or abs(drift.change) >= _LEAST_DRIFT):
                change = (
                    f" by {signed(100 * drift.change, ',.0f')} %"
                    if drift.change is not None
                    else ""
                )
                yield f"{metrics[metric].title} drifted{change} over the days of {name}."


def _of_arm(name: str, arm: ArmSummary, strata: str) -> Iterator[str]:
    if not arm.jobs:
        return
    if arm.imbalance >= _UNEQUAL and arm.matched >= MIN_MATCHED:
        yield (
            f"The {strata} of {name} differ from the first arm, by up to "
            f"{percent(arm.imbalance)} percentage points. Weights make the compared jobs "
            "equal."
        )
    if arm.matched < _FEW_MATCHED:
        yield (
            f"Only {_percent(arm.matched)} of the jobs of {name} have {strata} that all arms have. "
            "The others are left out."
        )
    if arm.users != 1 and (arm.largest_user_share or 0) > _MOST:
        yield f"{_percent(arm.largest_user_share or 0)} of the jobs of {name} are of one user."
