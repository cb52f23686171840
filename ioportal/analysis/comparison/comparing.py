"""Compare arms metric by metric: figures, effects and conclusions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from ioportal.analysis.comparison.arms import balance
from ioportal.analysis.comparison.day_samples import cliffs_delta, day_sample
from ioportal.analysis.comparison.effects import (
    compare_days,
    compare_paired_days,
    contrast,
    holm,
    resample,
    resampled_days,
    smallest_effect,
)
from ioportal.analysis.comparison.results import (
    CONFIDENCE,
    MARGIN,
    MIN_DAYS,
    MIN_EFFECTIVE_DAYS,
    MIN_JOBS,
    MIN_RUNS,
    SHARES,
    ArmFigures,
    ArmSummary,
    Comparison,
    Daily,
    Drift,
    Effect,
    MetricComparison,
    Raw,
    Refusal,
    Scale,
    Verdict,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ioportal.analysis.comparison.arms import Arm, Balance, Floats, Ints
    from ioportal.analysis.comparison.day_samples import DaySample
    from ioportal.analysis.comparison.effects import Contrast, DayTest, Resampled

_QUANTILES = np.linspace(0, 1, SHARES)
_MEDIAN, _P90 = 50, 90  # of the quantiles
_SIGNIFICANCE = 1 - CONFIDENCE


def compare(
    arms: Sequence[Arm],
    metrics: Sequence[str],
    *,
    control: Sequence[Arm] = (),
    margin: float = MARGIN,
    are_runs: bool = False,
    min_stratum_jobs: int = 1,
) -> Comparison:
    """Compare arms with the first arm.

    Args:
        arms: two to four; each has values of all metrics.
        metrics: names of the metrics shown; p-values are corrected for all of them.
        control: for each arm, jobs of the same time that were not treated; or none.
        margin: relative change within which medians count as equivalent.
        are_runs: whether elements are independent runs, each with its own number as its day.
        min_stratum_jobs: number of jobs in each arm below which a stratum is not compared.

    Returns:
        Figures of each arm and effects of each arm but the first. The result is the same for the
        same input.

    Raises:
        ValueError: the number of control arms differs from that of the arms.

    Source: docs/comparisons.md.
    """
    if control and len(control) != len(arms):
        raise ValueError(f"{len(arms)} arms need as many control arms, got {len(control)}.")
    days = np.unique(np.concatenate([arm.known_days for arm in (*arms, *control)]))
    weights = resampled_days(days.size)
    own, others = (_Weighted(side, min_stratum_jobs, days, weights) for side in (arms, control))
    rows = [_Row.read(own, others, metric, are_runs=are_runs) for metric in metrics]
    rows = _with_drifts(_with_conclusions(rows, margin))
    return Comparison(
        metrics={metric: row.comparison for metric, row in zip(metrics, rows, strict=True)},
        arms=own.summaries,
        balance=own.balance,
        control_arms=others.summaries,
        control_balance=others.balance,
        are_runs=are_runs,
    )


class _Weighted:
    """Arms with the weights of their jobs and the resampled weights of their days."""

    def __init__(
        self, arms: Sequence[Arm], min_stratum_jobs: int, days: Ints, day_weights: Floats
    ) -> None:
        self.arms = arms
        self.balance: Balance | None = None
        if any(arm.size for arm in arms):
            self.balance = balance(arms, min_stratum_jobs)
        self._weights = [
            self.balance.job_weights(number, arm) if self.balance else np.ones(arm.size)
            for number, arm in enumerate(arms)
        ]
        self._rows = [arm.known_days.searchsorted(arm.days) for arm in arms]
        self._day_weights = [day_weights[:, days.searchsorted(arm.known_days)] for arm in arms]
        self.is_shared = self.balance is None or bool((self.balance.standard > 0).any())
        self._is_weighted = any(np.ptp(weights) > 0 for weights in self._weights if weights.size)

    @property
    def summaries(self) -> tuple[ArmSummary, ...]:
        """Facts of the arms other than metrics."""
        if not self.balance:
            return tuple(ArmSummary(0, 0, 0, 0.0, 0.0, 0.0) for _ in self.arms)
        return tuple(
            ArmSummary(
                arm.size,
                int(arm.known_days.size),
                int(np.unique(arm.users).size),
                float(matched),
                float(difference),
                arm.largest_user_share,
            )
            for arm, matched, difference in zip(
                self.arms, self.balance.matched, self.balance.differences, strict=True
            )
        )

    def sample(self, number: int, metric: str) -> DaySample:
        """Return the weighted values of an arm."""
        arm = self.arms[number]
        return day_sample(
            arm.values[metric], self._weights[number], self._rows[number], arm.known_days
        )

    def figures(self, number: int, metric: str, sample: DaySample) -> ArmFigures:
        """Return the figures of an arm."""
        values = self.arms[number].values[metric]
        is_known = ~np.isnan(values)
        known = int(np.count_nonzero(is_known))
        days = int(np.unique(self._rows[number][is_known]).size)
        counts = ArmFigures(known, values.size - known, days, sample.effective_jobs)
        if not sample.size:
            return counts
        quantiles = sample.quantiles(_QUANTILES).tolist()
        has_values = sample.day_weights > 0
        per_day = np.bincount(sample.rows, minlength=sample.days.size)
        return replace(
            counts,
            median=quantiles[_MEDIAN],
            mean=sample.mean,
            p90=quantiles[_P90],
            raw=_raw(values[is_known]) if self._is_weighted else None,
            quantiles=tuple(quantiles),
            daily=Daily(
                sample.days[has_values], sample.daily_medians[has_values], per_day[has_values]
            ),
        )

    def resampled(self, number: int, sample: DaySample, figures: ArmFigures) -> Resampled | None:
        """Return a sample with resampled days; None: no values."""
        if figures.median is None:
            return None
        return resample(sample, figures.median, self._day_weights[number])


def _raw(known: Floats) -> Raw:
    median, p90 = np.quantile(known, (0.5, 0.9)).tolist()
    return Raw(median, float(known.mean()), p90)


@dataclass(frozen=True)
class _Tested:
    """An effect before conclusions."""

    effect: Effect
    contrast: Contrast | None = None
    test: DayTest | None = None


@dataclass(frozen=True)
class _Row:
    """A metric while it is compared."""

    comparison: MetricComparison
    effects: tuple[_Tested, ...]
    control_effects: tuple[_Tested, ...]
    controlled: tuple[_Tested, ...]

    @classmethod
    def read(cls, own: _Weighted, others: _Weighted, metric: str, *, are_runs: bool) -> _Row:
        figures, resampled, effects = _effects(own, metric, are_runs=are_runs)
        control_figures, control_resampled, control_effects = _effects(
            others, metric, are_runs=are_runs
        )
        controlled = tuple(
            _controlled(
                (resampled[0], control_resampled[0]),
                (resampled[number], control_resampled[number]),
                _refusal_of(effects[number - 1]) or _refusal_of(control_effects[number - 1]),
            )
            for number in range(1, len(others.arms))
        )
        comparison = MetricComparison(figures, (), control_figures, (), ())
        return cls(comparison, effects, control_effects, controlled)


def _refusal_of(tested: _Tested) -> Refusal | None:
    return tested.effect.refusal


def _effects(
    side: _Weighted, metric: str, *, are_runs: bool
) -> tuple[tuple[ArmFigures, ...], list[Resampled | None], tuple[_Tested, ...]]:
    samples = [side.sample(number, metric) for number in range(len(side.arms))]
    figures = tuple(side.figures(number, metric, sample) for number, sample in enumerate(samples))
    resampled = [
        side.resampled(number, sample, figures[number]) for number, sample in enumerate(samples)
    ]
    effects = tuple(
        _tested(side, resampled[0], resampled[number], are_runs=are_runs)
        for number in range(1, len(samples))
    )
    return figures, resampled, effects


def _tested(
    side: _Weighted, first: Resampled | None, other: Resampled | None, *, are_runs: bool
) -> _Tested:
    if not side.is_shared:
        return _Tested(_refused(Refusal.NO_SHARED_STRATUM))
    if not (first and other):
        return _Tested(_refused(Refusal.NO_VALUES))
    scale = _scale(first, other)
    effect = Effect(
        Verdict.REFUSED,
        scale=scale,
        estimate=_effect(other.level(scale) - first.level(scale), scale),
        delta=cliffs_delta(first.sample, other.sample),
    )
    refusals = (_refusal(arm.sample, are_runs=are_runs) for arm in (first, other))
    if refusal := next(filter(None, refusals), None):
        return _Tested(replace(effect, refusal=refusal))
    if are_runs:
        pvalue = stats.mannwhitneyu(first.sample.values, other.sample.values).pvalue
        return _Tested(
            effect,
            contrast([(other, None, 1), (first, None, -1)], scale),
            DayTest(float(pvalue), None),
        )
    on_days, common = _common_days(first, other, scale)
    if common:
        return _Tested(
            effect,
            contrast([(other, first, 1)], scale),
            compare_paired_days(on_days[1] - on_days[0]),
        )
    daily = [values[~np.isnan(values)] for values in (other.daily(scale), first.daily(scale))]
    return _Tested(
        effect, contrast([(other, None, 1), (first, None, -1)], scale), compare_days(*daily)
    )


def _scale(*arms: Resampled) -> Scale:
    return Scale.RATIO if all(arm.has_ratio() for arm in arms) else Scale.DIFFERENCE


def _effect(level: float, scale: Scale) -> float:
    return float(np.exp(level)) if scale is Scale.RATIO else level


def _refused(reason: Refusal) -> Effect:
    return Effect(Verdict.REFUSED, reason)


def _refusal(sample: DaySample, *, are_runs: bool) -> Refusal | None:
    if are_runs:
        return Refusal.FEW_RUNS if sample.size < MIN_RUNS else None
    if sample.size < MIN_JOBS:
        return Refusal.FEW_JOBS
    if sample.known_days < MIN_DAYS or sample.effective_days < MIN_EFFECTIVE_DAYS:
        return Refusal.FEW_DAYS
    return None


def _common_days(
    first: Resampled, other: Resampled, scale: Scale
) -> tuple[tuple[Floats, Floats], bool]:
    """Return daily figures on the days of both, and whether these are at least half of all."""
    by_arm = []
    known = []
    for arm in (first, other):
        daily = arm.daily(scale)
        is_known = ~np.isnan(daily)
        by_arm.append(daily[is_known])
        known.append(arm.sample.days[is_known])
    common, at_first, at_other = np.intersect1d(*known, assume_unique=True, return_indices=True)
    most = max(days.size for days in known)
    is_most = common.size >= MIN_DAYS and 2 * common.size >= most
    return (by_arm[0][at_first], by_arm[1][at_other]), is_most


def _controlled(
    before: tuple[Resampled | None, Resampled | None],
    after: tuple[Resampled | None, Resampled | None],
    refusal: Refusal | None,
) -> _Tested:
    """Compare the effect of the treated jobs with that of the control."""
    arms = [arm for arm in (*before, *after) if arm]
    if len(arms) < len(before) + len(after):
        return _Tested(_refused(refusal or Refusal.NO_VALUES))
    scale = _scale(*arms)
    treated_before, control_before, treated_after, control_after = arms
    result = contrast(
        [(treated_after, control_after, 1), (treated_before, control_before, -1)], scale
    )
    effect = Effect(Verdict.REFUSED, refusal, scale, _effect(result.estimate, scale))
    if refusal:
        return _Tested(effect)
    daily = []
    for treated, control in ((treated_after, control_after), (treated_before, control_before)):
        (of_control, of_treated), _ = _common_days(control, treated, scale)
        with np.errstate(invalid="ignore"):
            daily.append(of_treated - of_control)
    if min(differences.size for differences in daily) < MIN_DAYS:
        return _Tested(replace(effect, refusal=Refusal.FEW_SHARED_DAYS))
    return _Tested(
        effect,
        result,
        compare_days(*(np.nan_to_num(d, nan=0.0, posinf=np.inf, neginf=-np.inf) for d in daily)),
    )


def _with_conclusions(rows: Sequence[_Row], margin: float) -> list[_Row]:
    """Correct the p-values over all rows, separately for effects with and without control."""
    effects = _concluded([row.effects for row in rows], margin)
    control = _concluded([row.control_effects for row in rows], margin)
    controlled = _concluded([row.controlled for row in rows], margin)
    return [
        replace(
            row,
            comparison=replace(
                row.comparison,
                effects=effects[number],
                control_effects=control[number],
                controlled=controlled[number],
            ),
        )
        for number, row in enumerate(rows)
    ]


def _concluded(tested: Sequence[tuple[_Tested, ...]], margin: float) -> list[tuple[Effect, ...]]:
    tests = [each.test.p for each in chain.from_iterable(tested) if each.test]
    adjusted = iter(holm(tests))
    return [
        tuple(
            _conclude(each, next(adjusted), len(tests), margin)
            if each.test
            else replace(each.effect, margin=margin)
            for each in row
        )
        for row in tested
    ]


def _conclude(tested: _Tested, adjusted_p: float, tests: int, margin: float) -> Effect:
    result, test, scale = tested.contrast, tested.test, tested.effect.scale
    assert result
    assert test
    low, high = (_effect(bound, scale) for bound in result.interval)
    unchanged = 1 if scale is Scale.RATIO else 0
    is_within = scale is Scale.RATIO and 1 - margin <= low and high <= 1 + margin
    if adjusted_p < _SIGNIFICANCE and not low <= unchanged <= high:
        verdict = Verdict.CHANGED
    else:
        verdict = Verdict.EQUIVALENT if is_within else Verdict.NO_CHANGE_DETECTED
    error = max(result.error, test.error or 0.0)
    smallest = smallest_effect(error, result.freedom, tests) if error else None
    if smallest and scale is Scale.RATIO:
        smallest = float(np.expm1(smallest))
    return replace(
        tested.effect,
        verdict=verdict,
        low=low,
        high=high,
        p=test.p,
        adjusted_p=adjusted_p,
        smallest=smallest,
        margin=margin,
        is_within_margin=is_within,
    )


def _with_drifts(rows: list[_Row]) -> list[_Row]:
    """Add the trends inside arms, with p-values corrected over all rows and arms."""
    trends = [
        [_trend(figures) for figures in (*row.comparison.arms, *row.comparison.control_arms)]
        for row in rows
    ]
    adjusted = iter(holm([trend[1] for row in trends for trend in row if trend]))
    drifts = [
        [Drift(trend[0], next(adjusted)) if trend else None for trend in row] for row in trends
    ]
    return [
        replace(
            row,
            comparison=replace(
                row.comparison,
                arms=_drifting(row.comparison.arms, drift[: len(row.comparison.arms)]),
                control_arms=_drifting(
                    row.comparison.control_arms, drift[len(row.comparison.arms) :]
                ),
            ),
        )
        for row, drift in zip(rows, drifts, strict=True)
    ]


def _drifting(
    arms: tuple[ArmFigures, ...], drifts: Sequence[Drift | None]
) -> tuple[ArmFigures, ...]:
    return tuple(replace(arm, drift=drift) for arm, drift in zip(arms, drifts, strict=True))


def _trend(figures: ArmFigures) -> tuple[float | None, float] | None:
    """Return the relative change from the first to the last day, and the p-value of the trend."""
    daily = figures.daily
    if daily is None or daily.days.size < MIN_DAYS or np.ptp(daily.medians) == 0:
        return None
    p = float(stats.kendalltau(daily.days, daily.medians).pvalue)
    if daily.medians.min() <= 0:
        return None, p
    slope = stats.theilslopes(np.log(daily.medians), daily.days).slope
    return float(np.expm1(slope * np.ptp(daily.days))), p
