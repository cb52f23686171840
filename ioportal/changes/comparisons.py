"""Comparisons of arms of jobs: cached, and anonymous where an arm has other users' jobs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from django.db.models import Exists, OuterRef
from django.http import QueryDict
from django.utils import timezone

from ioportal.changes.arm_details import arm_jobs
from ioportal.jobs.analysis.anonymity import (
    MIN_GROUP,
    coarse,
    coarsened,
    in_anonymous_groups,
    is_anonymous,
    rounded_count,
)
from ioportal.jobs.analysis.comparison.comparing import compare
from ioportal.jobs.analysis.comparison.results import (
    MARGIN,
    MAX_OVERLAP,
    ArmFigures,
    Comparison,
    Effect,
    Refusal,
    Verdict,
)
from ioportal.jobs.cache import cached
from ioportal.jobs.populations.population_values import Covariate
from ioportal.jobs.populations.selections import BATCH_JOBS, Selection, figures_version, other_jobs
from ioportal.jobs.redefinitions import redefined, redefinitions
from ioportal.jobs.visibility import visibility_key
from ioportal.metrics import METRICS, PANDA_METRICS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from django.contrib.auth.models import User

    from ioportal.jobs.analysis.comparison.results import ArmSummary, Daily, MetricComparison
    from ioportal.jobs.populations.population_values import JobValues
    from ioportal.jobs.populations.selections import JobKind
    from ioportal.metrics import Metric

_DIGITS, _P_DECIMALS = 3, 3  # of effects in which other users have an arm
_CACHE_VERSION = 8  # to be changed with the classes of results
_CONTROL_FILTERS = ("cluster", "start", "end")
_HIDDEN = {Refusal.NO_VALUES, Refusal.NO_SHARED_STRATUM}  # after small groups are left out
_ANONYMOUS_COVARIATES = frozenset({Covariate.NODES, Covariate.NONE})


@dataclass(frozen=True)
class ArmComparison:
    """A comparison with the texts of its strata."""

    result: Comparison
    covariate: Covariate
    labels: Mapping[int, str]  # text of each stratum


def metrics_of(kind: JobKind) -> tuple[Metric, ...]:
    """Return the metrics that are compared."""
    return METRICS if kind is BATCH_JOBS else (*PANDA_METRICS, *METRICS)


def compare_arms(
    arms: Sequence[Selection],
    metrics: Sequence[str],
    *,
    control: Sequence[Selection] = (),
    covariate: Covariate = Covariate.NODES,
    margin: float = MARGIN,
) -> ArmComparison:
    """Compare two to four arms of one kind of jobs with the first; results are cached.

    A job belongs to an arm if it matches the filters and *started* in the range of the arm.

    Args:
        arms: selections of jobs.
        metrics: names of the metrics; p-values are corrected for all metrics.
        control: for each arm, the jobs that were not treated (`control_arm`); or none.
        covariate: what divides the jobs into strata. Strata of users, queues and applications are
            replaced by sizes if an arm has other users' jobs.
        margin: relative change within which medians count as equivalent.
    """
    everyone = (*arms, *control)
    if any(arm.is_anonymous for arm in everyone) and covariate not in _ANONYMOUS_COVARIATES:
        covariate = Covariate.NODES
    keys = [[arm.key for arm in side] for side in (arms, control)]
    zone = timezone.get_current_timezone_name()
    times = redefinitions()
    compared = cached(
        "comparison",
        (_CACHE_VERSION, keys, list(metrics), covariate, zone, times),
        lambda: _compare(arms, control, metrics, covariate, times),
        lambda: figures_version(arms[0].kind),
    )
    return replace(compared, result=compared.result.with_margin(margin))


def without_overlaps(
    compared: ArmComparison, shared: Mapping[tuple[int, int], int]
) -> ArmComparison:
    """Refuse the effects of arms that are largely the same jobs as the first arm.

    Args:
        compared: the comparison.
        shared: number of jobs in two arms, by the numbers of the arms.
    """
    result = compared.result
    first, *others = (summary.jobs for summary in result.arms)
    overlaps = [
        shared.get((0, number), 0) > MAX_OVERLAP * min(first, jobs)
        for number, jobs in enumerate(others, 1)
    ]
    if not any(overlaps):
        return compared

    def kept(effects: tuple[Effect, ...]) -> tuple[Effect, ...]:
        return tuple(
            Effect(Verdict.REFUSED, Refusal.OVERLAP, margin=effect.margin) if overlap else effect
            for effect, overlap in zip(effects, overlaps, strict=False)
        )

    metrics = {
        name: replace(row, effects=kept(row.effects), controlled=kept(row.controlled))
        for name, row in result.metrics.items()
    }
    return replace(compared, result=replace(result, metrics=metrics))


def control_arm(user: User, arm: Selection) -> Selection:
    """Select everyone else's jobs of the same clusters and time.

    For staff, all jobs that are not in the arm. For other users, the jobs that they may not see, as
    an anonymous aggregate: with jobs that they see, a difference would reveal single jobs.
    """
    kind = arm.kind
    form = kind.filter_set(QueryDict(arm.filters)).form
    kept = QueryDict(mutable=True)
    if form.is_valid():
        for name in _CONTROL_FILTERS:
            if value := form.cleaned_data[name]:
                kept[name] = value.isoformat() if name != "cluster" else value.name
    filters = kept.urlencode()
    if not user.is_staff:
        return other_jobs(user, kind, filters)
    jobs = kind.filter_set(kept, queryset=kind.visible_to(user)).qs
    jobs = jobs.filter(~Exists(arm.jobs.filter(pk=OuterRef("pk"))))
    return Selection(kind, filters, visibility_key(user), jobs, excluded=arm.filters)


def _compare(
    arms: Sequence[Selection],
    control: Sequence[Selection],
    metrics: Sequence[str],
    covariate: Covariate,
    times: Sequence[datetime],
) -> ArmComparison:
    values = [_values(arm, metrics, covariate) for arm in arms]
    if all(jobs.days.size for jobs in values):  # otherwise there is no effect to control
        values += [_values(arm, metrics, covariate) for arm in control]
    everyone = (*arms, *control)[: len(values)]
    sides = [jobs.arm for jobs in values]
    result = compare(
        sides[: len(arms)],
        metrics,
        control=sides[len(arms) :],
        redefined=redefined(sides, metrics, times),
    )
    hidden = [
        jobs if arm.is_anonymous else None for arm, jobs in zip(everyone, values, strict=True)
    ]
    if any(hidden):
        result = _anonymous(result, hidden[: len(arms)], hidden[len(arms) :])
    labels = {number: label for jobs in values for number, label in jobs.labels.items()}
    return ArmComparison(result, covariate, labels)


def _values(arm: Selection, metrics: Sequence[str], covariate: Covariate) -> JobValues:
    values = arm.kind.values(arm_jobs(arm), metrics, covariate)
    return _without_small_groups(values, arm) if arm.is_anonymous else values


def _without_small_groups(jobs: JobValues, arm: Selection) -> JobValues:
    """Return rounded values, without values of groups that could reveal an owner or a job."""
    in_large = in_anonymous_groups(jobs.strata, jobs.batch_jobs, jobs.users)
    strata, batch_jobs = jobs.strata[in_large], jobs.batch_jobs[in_large]
    users = jobs.users[in_large]
    values = {}
    for metric, all_values in jobs.values.items():
        rounded = np.full(strata.size, np.nan)
        known = all_values[in_large]
        is_known = ~np.isnan(known)
        known_jobs, known_users = batch_jobs[is_known], users[is_known]
        if arm.kind.is_own(metric) and is_anonymous(known_jobs, known_users):
            rounded[is_known] = coarsened(known[is_known])
        values[metric] = rounded
    return replace(
        jobs,
        days=jobs.days[in_large],
        users=users,
        batch_jobs=batch_jobs,
        strata=strata,
        labels={n: label for n, label in jobs.labels.items() if (strata == n).any()},
        values=values,
    )


def _anonymous(
    result: Comparison,
    arms: Sequence[JobValues | None],
    control: Sequence[JobValues | None],
) -> Comparison:
    """Hide what would reveal single jobs of other users."""
    return replace(
        result,
        metrics={
            metric: _without_single_jobs(row, arms, control, metric)
            for metric, row in result.metrics.items()
        },
        arms=_hide_users(result.arms, arms),
        control_arms=_hide_users(result.control_arms, control),
    )


def _hide_users(
    summaries: Sequence[ArmSummary], hidden: Sequence[JobValues | None]
) -> tuple[ArmSummary, ...]:
    return tuple(
        replace(summary, jobs=rounded_count(summary.jobs), users=None, largest_user_share=None)
        if jobs
        else summary
        for summary, jobs in zip(summaries, hidden, strict=True)
    )


def _without_single_jobs(
    row: MetricComparison,
    arms: Sequence[JobValues | None],
    control: Sequence[JobValues | None],
    metric: str,
) -> MetricComparison:
    own = _hide_figures(row.arms, arms, metric)
    others = _hide_figures(row.control_arms, control, metric)
    sides = [(arms, own), (control, others)]
    return replace(
        row,
        arms=own,
        effects=_hide_effects(row.effects, sides[:1]),
        control_arms=others,
        control_effects=_hide_effects(row.control_effects, sides[1:]),
        controlled=_hide_effects(row.controlled, sides),
    )


def _hide_effects(
    effects: Sequence[Effect],
    sides: Sequence[tuple[Sequence[JobValues | None], Sequence[ArmFigures]]],
) -> tuple[Effect, ...]:
    """Hide what effects reveal of arms of other users.

    An effect relative to a hidden median would reveal the median. With an arm of equal values,
    Cliff's delta would count values of the other arm. Other effects have three digits.

    Args:
        effects: of each arm but the first.
        sides: arms that the effects compare: values of other users' arms, and shown figures.
    """
    shown = []
    for number, effect in enumerate(effects, 1):
        compared = [
            figures[at] for hidden, figures in sides for at in (0, number) if hidden[at] is not None
        ]
        if not compared:
            shown.append(effect)
        elif effect.refusal in _HIDDEN or any(arm.median is None for arm in compared):
            shown.append(Effect(Verdict.REFUSED, Refusal.HIDDEN, margin=effect.margin))
        else:
            shown.append(_rounded(effect))
    return tuple(shown)


def _rounded(effect: Effect) -> Effect:
    """Return an effect without digits that could reveal single values of other users."""

    def digits(value: float | None) -> float | None:
        return None if value is None else float(f"{value:.{_DIGITS}g}")

    def decimals(p: float | None) -> float | None:
        return None if p is None else max(round(p, _P_DECIMALS), 10.0**-_P_DECIMALS)

    return replace(
        effect,
        estimate=digits(effect.estimate),
        low=digits(effect.low),
        high=digits(effect.high),
        p=decimals(effect.p),
        adjusted_p=decimals(effect.adjusted_p),
        delta=None,
        smallest=digits(effect.smallest),
    )


def _hide_figures(
    figures: Sequence[ArmFigures], hidden: Sequence[JobValues | None], metric: str
) -> tuple[ArmFigures, ...]:
    return tuple(
        _without_extremes(arm, jobs, metric) if jobs else arm
        for arm, jobs in zip(figures, hidden, strict=True)
    )


def _without_extremes(figures: ArmFigures, jobs: JobValues, metric: str) -> ArmFigures:
    """Hide the mean, and quantiles with fewer than ten values on either side.

    Without the values of strata that are not compared, all are hidden that could reveal an owner.
    """
    if not figures.hides_owners:
        figures = ArmFigures(figures.jobs, figures.unknown, figures.days, figures.effective_jobs)

    def safe(percent: int, value: float | None) -> float | None:
        has_group = figures.jobs * min(percent, 100 - percent) >= 100 * MIN_GROUP
        return coarse(value) if has_group and value is not None else None

    raw = figures.raw and replace(
        figures.raw, median=safe(50, figures.raw.median), mean=None, p90=safe(90, figures.raw.p90)
    )
    return replace(
        figures,
        jobs=rounded_count(figures.jobs),
        unknown=rounded_count(figures.unknown),
        median=safe(50, figures.median),
        mean=None,
        p90=safe(90, figures.p90),
        raw=raw,
        quantiles=tuple(safe(p, value) for p, value in enumerate(figures.quantiles)),
        daily=figures.daily and _large_days(figures.daily, jobs, metric),
    )


def _large_days(daily: Daily, jobs: JobValues, metric: str) -> Daily:
    """Return the days with at least ten values on either side of the median."""
    is_known = ~np.isnan(jobs.values[metric])
    in_large = in_anonymous_groups(
        *(column[is_known] for column in (jobs.days, jobs.batch_jobs, jobs.users))
    )
    is_safe = np.isin(daily.days, jobs.days[is_known][in_large]) & (daily.jobs >= 2 * MIN_GROUP)
    return replace(
        daily,
        days=daily.days[is_safe],
        medians=coarsened(daily.medians[is_safe]).astype(float),
        jobs=np.array([rounded_count(n) for n in daily.jobs[is_safe].tolist()], int),
    )
