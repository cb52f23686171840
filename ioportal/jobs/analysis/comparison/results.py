"""Results of a comparison of arms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ioportal.jobs.analysis.comparison.arms import Balance, Floats, Ints

CONFIDENCE = 0.95  # of intervals; tests reject below 1 - CONFIDENCE
POWER = 0.8  # probability to detect the smallest detectable effect
MARGIN = 0.03  # of equivalence, unless a user selects another one
MIN_JOBS = 10  # known values of an arm below which nothing is concluded
MIN_DAYS = 5  # days of an arm below which nothing is concluded
MIN_EFFECTIVE_DAYS = 3.0  # as many days with equal numbers of jobs are as informative
MIN_RUNS = 4  # independent runs of an arm; with fewer runs, p is never below 5 %
MIN_MATCHED = 0.2  # share of an arm's jobs in common strata below which nothing is concluded
MAX_OVERLAP = 0.1  # share of the smaller arm that is in another arm, too; above it, no conclusion
INSENSITIVE = 1.0  # relative change; if not even this would have been seen, the question is open
SHARES = 101  # quantiles of an arm: 0 %, 1 %, ..., 100 %


class Scale(StrEnum):
    """How an effect is expressed; a difference where a median is zero."""

    RATIO = "ratio"
    DIFFERENCE = "difference"


class Verdict(StrEnum):
    """Conclusion about one metric of two arms."""

    CHANGED = "changed"
    EQUIVALENT = "equivalent"
    NO_CHANGE_DETECTED = "no change detected"
    REFUSED = "refused"


class Outcome(StrEnum):
    """Conclusion about one metric of two arms in detail, as texts and exports have it."""

    CHANGED = "changed"
    EQUIVALENT = "equivalent"
    POSSIBLE = "possible change"  # the interval excludes "no change", the corrected test does not
    SHIFTED = "values differ"  # the corrected test rejects, the interval has no change
    UNKNOWN = "unknown"  # not even a change of twice would have been detected
    NOT_DETECTED = "no change detected"
    REFUSED = "refused"


class Refusal(StrEnum):
    """Reason for no conclusion."""

    NO_VALUES = "no known values"
    FEW_JOBS = "too few jobs"
    FEW_DAYS = "too few days"
    FEW_RUNS = "too few runs"
    NO_SHARED_STRATUM = "no shared stratum"
    FEW_MATCHED = "too few jobs in shared strata"
    HIDDEN = "too few jobs of other users"
    OVERLAP = "the same jobs in both arms"
    REDEFINED = "another meaning of opens"


@dataclass(frozen=True)
class Effect:
    """Effect of one arm relative to the first arm, on the medians.

    With a control arm, it is the effect beyond the control's effect: a ratio of ratios, or a
    difference of differences. If refused, only `estimate` and `delta` may be known.
    """

    verdict: Verdict
    refusal: Refusal | None = None
    scale: Scale = Scale.RATIO
    estimate: float | None = None  # ratio (other / first), or difference (other - first)
    low: float | None = None  # bounds of the 95 % interval of the estimate
    high: float | None = None
    p: float | None = None  # of the test on daily medians (of runs: on their values)
    adjusted_p: float | None = None  # Holm-Bonferroni over all tests of the comparison
    delta: float | None = None  # Cliff's delta; > 0: values of the other arm are larger
    smallest: float | None = None  # smallest detectable effect: relative, or a difference
    margin: float = MARGIN
    is_within_margin: bool = False  # the interval lies within 1 +- margin
    is_paired: bool = False  # by common days: of both arms, or of each arm and its control

    @property
    def is_change(self) -> bool:
        """Whether a change is detected and not negligible."""
        return self.verdict is Verdict.CHANGED and not self.is_within_margin

    @property
    def is_possible(self) -> bool:
        """Whether the interval excludes "no change", but the corrected test does not confirm it."""
        if self.verdict is not Verdict.NO_CHANGE_DETECTED or self.low is None or self.high is None:
            return False
        return not self.low <= (self.scale is Scale.RATIO) <= self.high

    @property
    def is_shifted(self) -> bool:
        """Whether the corrected test rejects, but the interval of the medians has no change."""
        if self.verdict not in {Verdict.NO_CHANGE_DETECTED, Verdict.EQUIVALENT}:
            return False
        return self.adjusted_p is not None and self.adjusted_p < 1 - CONFIDENCE

    @property
    def is_open(self) -> bool:
        """Whether nothing is detected, but not even a change of twice would have been."""
        return (
            self.verdict is Verdict.NO_CHANGE_DETECTED
            and self.scale is Scale.RATIO
            and not (self.is_possible or self.is_shifted)
            and (self.smallest or 0.0) >= INSENSITIVE
        )

    @property
    def outcome(self) -> Outcome:
        """The conclusion in detail."""
        if self.verdict is not Verdict.NO_CHANGE_DETECTED:
            return Outcome(self.verdict.value)
        if self.is_shifted:
            return Outcome.SHIFTED
        if self.is_possible:
            return Outcome.POSSIBLE
        return Outcome.UNKNOWN if self.is_open else Outcome.NOT_DETECTED

    def with_margin(self, margin: float) -> Effect:
        """Return the effect with another margin: it affects only equivalence."""
        if self.low is None or self.high is None:
            return replace(self, margin=margin)
        is_within = self.scale is Scale.RATIO and 1 - margin <= self.low and self.high <= 1 + margin
        unchanged = Verdict.EQUIVALENT if is_within else Verdict.NO_CHANGE_DETECTED
        verdict = self.verdict if self.verdict is Verdict.CHANGED else unchanged
        return replace(self, margin=margin, is_within_margin=is_within, verdict=verdict)


@dataclass(frozen=True)
class Raw:
    """Figures of an arm without weights."""

    median: float | None
    mean: float | None
    p90: float | None


@dataclass(frozen=True)
class Daily:
    """Weighted median by day, of days with values."""

    days: Ints
    medians: Floats
    jobs: Ints


@dataclass(frozen=True)
class Drift:
    """Significant trend of the daily medians inside an arm."""

    change: (
        float | None
    )  # relative, from the first to the last day (Theil-Sen of logs); None: zeros
    adjusted_p: float  # Kendall's tau with days, Holm-Bonferroni over all metrics and arms


@dataclass(frozen=True)
class ArmFigures:
    """Figures of one metric in one arm.

    `jobs`, `unknown` and `days` count all jobs of the arm. Median, mean, p90 and quantiles are
    weighted if the mix of strata differs; then `raw` has those without weights.
    """

    jobs: int  # with a known value
    unknown: int
    days: int  # with a known value
    effective_jobs: float  # jobs with equal weights that are as informative
    median: float | None = None
    mean: float | None = None
    p90: float | None = None
    raw: Raw | None = None
    quantiles: tuple[float | None, ...] = ()  # 0 %, 1 %, ..., 100 %; None: hidden
    daily: Daily | None = None
    drift: Drift | None = None  # None: no significant trend
    hides_owners: bool = False  # `anonymity.hides_owners` of the jobs with a value and weight


@dataclass(frozen=True)
class MetricComparison:
    """Figures and effects of one metric.

    `effects` and `controlled` have an element for each arm but the first; `controlled` is empty
    without a control.
    """

    arms: tuple[ArmFigures, ...]
    effects: tuple[Effect, ...]
    control_arms: tuple[ArmFigures, ...] = ()
    control_effects: tuple[Effect, ...] = ()
    controlled: tuple[Effect, ...] = ()


@dataclass(frozen=True)
class ArmSummary:
    """Facts of an arm other than metrics."""

    jobs: int
    days: int
    users: int | None  # None: hidden
    matched: float  # share of jobs in strata that all arms have
    imbalance: float  # largest difference of a stratum's share to the first arm, before weighting
    largest_user_share: float | None  # of jobs; None: hidden


@dataclass(frozen=True)
class Comparison:
    """Comparison of arms; the first arm is the reference."""

    metrics: Mapping[str, MetricComparison]
    arms: tuple[ArmSummary, ...]
    balance: Balance | None  # None: no arm has jobs
    control_arms: tuple[ArmSummary, ...] = ()
    control_balance: Balance | None = None
    are_runs: bool = False  # independent runs instead of jobs by day

    def with_margin(self, margin: float) -> Comparison:
        """Return the comparison with another margin of all effects."""

        def changed(effects: tuple[Effect, ...]) -> tuple[Effect, ...]:
            return tuple(effect.with_margin(margin) for effect in effects)

        metrics = {
            name: replace(
                row,
                effects=changed(row.effects),
                control_effects=changed(row.control_effects),
                controlled=changed(row.controlled),
            )
            for name, row in self.metrics.items()
        }
        return replace(self, metrics=metrics)
