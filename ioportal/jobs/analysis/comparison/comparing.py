"""Compare arms metric by metric: figures, effects and conclusions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import scipy

from ioportal.jobs.analysis.anonymity import hides_owners
from ioportal.jobs.analysis.comparison.arms import balance
from ioportal.jobs.analysis.comparison.day_samples import cliffs_delta, day_sample
from ioportal.jobs.analysis.comparison.effects import (
    are_paired,
    daily_test,
    difference,
    estimate,
    from_level,
    holm,
    resample,
    resampled_days,
    run_test,
    smallest_effect,
)
from ioportal.jobs.analysis.comparison.results import (
    CONFIDENCE,
    MARGIN,
    MIN_DAYS,
    MIN_EFFECTIVE_DAYS,
    MIN_JOBS,
    MIN_MATCHED,
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
    from collections.abc import Collection, Iterator, Sequence

    import numpy.typing as npt

    from ioportal.jobs.analysis.comparison.arms import Arm, Balance, Floats, Ints
    from ioportal.jobs.analysis.comparison.day_samples import DaySample
    from ioportal.jobs.analysis.comparison.effects import Estimate, Resampled, TestResult

_QUANTILES = np.linspace(0, 1, SHARES)
_MEDIAN, _P90 = 50, 90  # of the quantiles
_SIGNIFICANCE = 1 - CONFIDENCE
_MOST = 50.0  # logarithm of a ratio, for few independent days


def compare(
    arms: Sequence[Arm],
    metrics: Sequence[str],
    *,
    control: Sequence[Arm] = (),
    margin: float = MARGIN,
    are_runs: bool = False,
    min_stratum_jobs: int = 1,
    redefined: Collection[str] = (),
) -> Comparison:
    """Compare arms with the first arm.

    Args:
        arms: two to four; each has values of all metrics.
        metrics: names of the metrics shown; p-values are corrected for all metrics.
        control: for each arm, jobs of the same time that were not treated; or none.
        margin: relative change within which medians count as equivalent.
        are_runs: whether elements are independent runs, each with its own number as its day.
        min_stratum_jobs: number of jobs in each arm below which a stratum is not compared.
        redefined: metrics whose meaning differs within or between the arms: they are refused, and
            a control, of which some jobs may be on other servers, does not help.

    Returns:
        Figures of each arm and effects of each arm but the first. The result is the same for the
        same input.

    Raises:
        ValueError: the numbers of arms and control arms differ.

    Source: docs/comparisons.md.
    """
    if control and len(control) != len(arms):
        raise ValueError(f"{len(arms)} arms need as many control arms, got {len(control)}.")
    days = np.unique(np.concatenate([arm.known_days for arm in (*arms, *control)]))
    weights = resampled_days(days)
    treated, others = (_Weighted(side, min_stratum_jobs, days, weights) for side in (arms, control))
    own, controls = (
        [
            _side(side, metric, are_runs=are_runs, is_redefined=metric in redefined)
            for metric in metrics
        ]
        for side in (treated, others)
    )
    controlled = [
        [_controlled(side, other, number) for number in range(1, len(control))]
        for side, other in zip(own, controls, strict=True)
    ]
    rows = zip(
        _with_drifts([side.figures for side in own]),
        _concluded([side.effects for side in own], margin),
        _with_drifts([side.figures for side in controls]),
        _concluded([side.effects for side in controls], margin),
        _concluded(controlled, margin),
        strict=True,
    )
    return Comparison(
        metrics={metric: MetricComparison(*row) for metric, row in zip(metrics, rows, strict=True)},
        arms=treated.summaries,
        balance=treated.balance,
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
        self._users = [np.unique(arm.users, return_inverse=True)[1] for arm in arms]
        self._day_weights = [day_weights[:, days.searchsorted(arm.known_days)] for arm in arms]
        self.refusal = self._refusal()
        self._is_weighted = any(np.ptp(weights) > 0 for weights in self._weights if weights.size)

    def _refusal(self) -> Refusal | None:
        """Return the reason why the arms cannot be compared."""
        if self.balance is None:
            return None
        matched = self.balance.matched.min()
        if not matched:
            return Refusal.NO_SHARED_STRATUM
        return Refusal.FEW_MATCHED if matched < MIN_MATCHED else None

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
        days = int(np.count_nonzero(np.bincount(self._rows[number][is_known])))
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
            hides_owners=self._hides_owners(number, is_known),
        )

    def _hides_owners(self, number: int, is_known: npt.NDArray[np.bool_]) -> bool:
        """Return whether the weighted values of an arm hide the users of its jobs."""
        weights = self._weights[number] * is_known
        by_user = np.bincount(self._users[number], weights)
        jobs, users = np.count_nonzero(weights), np.count_nonzero(by_user)
        return bool(hides_owners(jobs, users, by_user.max(), by_user.sum()))

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
    """An effect before its conclusion; without a test it is refused."""

    effect: Effect
    estimate: Estimate | None = None
    test: TestResult | None = None


@dataclass(frozen=True)
class _Side:
    """A metric in arms of one side, treated or control."""

    figures: tuple[ArmFigures, ...]
    resampled: tuple[Resampled | None, ...]
    effects: tuple[_Tested, ...]


def _side(arms: _Weighted, metric: str, *, are_runs: bool, is_redefined: bool) -> _Side:
    numbers = range(len(arms.arms))
    samples = [arms.sample(number, metric) for number in numbers]
    figures = tuple(arms.figures(number, metric, samples[number]) for number in numbers)
    resampled = tuple(
        arms.resampled(number, samples[number], figures[number]) for number in numbers
    )
    refusal = Refusal.REDEFINED if is_redefined else arms.refusal
    effects = tuple(
        _refused(refusal) if refusal else _effect(resampled[0], other, are_runs=are_runs)
        for other in resampled[1:]
    )
    return _Side(figures, resampled, effects)


def _refused(reason: Refusal) -> _Tested:
    return _Tested(Effect(Verdict.REFUSED, reason))


def _effect(first: Resampled | None, other: Resampled | None, *, are_runs: bool) -> _Tested:
    if not (first and other):
        return _refused(Refusal.NO_VALUES)
    scale = _scale(first, other)
    effect = Effect(
        Verdict.REFUSED,
        scale=scale,
        estimate=from_level(other.level(scale) - first.level(scale), scale),
        delta=cliffs_delta(first.sample, other.sample),
    )
    refusals = (_refusal(arm.sample, are_runs=are_runs) for arm in (first, other))
    if refusal := next(filter(None, refusals), None):
        return _Tested(replace(effect, refusal=refusal))
    parts = difference(other, first)
    result = estimate(parts, scale, are_runs=are_runs)
    test = run_test(first.sample, other.sample) if are_runs else daily_test(parts, result)
    return _Tested(replace(effect, is_paired=are_paired(parts)), result, test)


def _scale(*arms: Resampled) -> Scale:
    return Scale.RATIO if all(arm.has_ratio() for arm in arms) else Scale.DIFFERENCE


def _refusal(sample: DaySample, *, are_runs: bool) -> Refusal | None:
    if are_runs:
        return Refusal.FEW_RUNS if sample.size < MIN_RUNS else None
    if sample.size < MIN_JOBS:
        return Refusal.FEW_JOBS
    if sample.known_days < MIN_DAYS or sample.effective_days < MIN_EFFECTIVE_DAYS:
        return Refusal.FEW_DAYS
    return None


def _controlled(treated: _Side, control: _Side, number: int) -> _Tested:
    """Compare the effect of an arm with the effect of its control."""
    for side in (treated, control):
        if refusal := side.effects[number - 1].effect.refusal:
            return _refused(refusal)
    before, control_before = treated.resampled[0], control.resampled[0]
    after, control_after = treated.resampled[number], control.resampled[number]
    if not (before and control_before and after and control_after):
        return _refused(Refusal.NO_VALUES)
    scale = _scale(before, control_before, after, control_after)
    parts = difference(after, control_after) + difference(before, control_before, -1)
    result = estimate(parts, scale)
    effect = Effect(
        Verdict.REFUSED, scale=scale, estimate=result.value, is_paired=are_paired(parts)
    )
    return _Tested(effect, result, daily_test(parts, result))


def _concluded(tested: Sequence[Sequence[_Tested]], margin: float) -> list[tuple[Effect, ...]]:
    """Draw conclusions with p-values corrected for all tests; one row per metric."""
    tests = [each.test.p for each in chain.from_iterable(tested) if each.test]
    adjusted = iter(holm(tests))
    return [tuple(_conclude(each, adjusted, len(tests), margin) for each in row) for row in tested]


def _conclude(tested: _Tested, adjusted: Iterator[float], tests: int, margin: float) -> Effect:
    effect, result, test = tested.effect, tested.estimate, tested.test
    if not (result and test):
        return replace(effect, margin=margin)
    low, high = result.interval
    adjusted_p = next(adjusted)
    is_ratio = result.scale is Scale.RATIO
    is_changed = adjusted_p < _SIGNIFICANCE and not low <= is_ratio <= high
    smallest = smallest_effect(max(result.error, test.error or 0.0), result.freedom, tests)
    concluded = replace(
        effect,
        verdict=Verdict.CHANGED if is_changed else Verdict.NO_CHANGE_DETECTED,
        low=low,
        high=high,
        p=test.p,
        adjusted_p=adjusted_p,
        smallest=(float(np.expm1(min(smallest, _MOST))) if is_ratio else smallest) or None,
    )
    return concluded.with_margin(margin)


def _with_drifts(sides: Sequence[Sequence[ArmFigures]]) -> list[tuple[ArmFigures, ...]]:
    """Add the significant trends inside arms, with p-values corrected for all trends."""
    p_values = [[_trend_p(figures.daily) for figures in row] for row in sides]
    adjusted = iter(holm([p for row in p_values for p in row]))
    return [tuple(_with_drift(figures, next(adjusted)) for figures in row) for row in sides]


def _trend_p(daily: Daily | None) -> float:
    """Return the p-value of a trend of daily medians: Kendall's tau."""
    if daily is None or daily.days.size < MIN_DAYS or np.ptp(daily.medians) == 0:
        return 1.0
    return float(scipy.stats.kendalltau(daily.days, daily.medians).pvalue)


def _with_drift(figures: ArmFigures, adjusted_p: float) -> ArmFigures:
    if not figures.daily or adjusted_p >= _SIGNIFICANCE:
        return figures
    days, medians = figures.daily.days, figures.daily.medians
    if medians.min() <= 0:
        return replace(figures, drift=Drift(None, adjusted_p))
    slope = scipy.stats.theilslopes(np.log(medians), days).slope
    return replace(figures, drift=Drift(float(np.expm1(slope * np.ptp(days))), adjusted_p))
