import statistics
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu, ttest_ind, ttest_rel
from scipy.stats import t as student

from ioportal.jobs.analysis.comparison.arms import balance
from ioportal.jobs.analysis.comparison.comparing import compare
from ioportal.jobs.analysis.comparison.effects import holm
from ioportal.jobs.analysis.comparison.results import Refusal, Scale, Verdict
from tests.jobs.analysis.comparison.populations import arm, narrow, simple_arm, skewed
from tests.properties import examples

VALUES = st.lists(st.integers(0, 50), min_size=1, max_size=400)
JOBS = st.lists(st.tuples(st.integers(1, 99), st.integers(0, 3)), min_size=1, max_size=60)


def x(arms, **options):
    """Compare by the metric 'x'."""
    return compare(arms, ["x"], **options).metrics["x"]


@given(VALUES, VALUES)
def test_figures_agree_with_independent_ones(first, other):
    result = x([simple_arm(v, range(len(v))) for v in ([*first, np.nan], other)])
    [effect] = result.effects
    figures = result.arms[0]
    u = mannwhitneyu(other, first).statistic

    assert (figures.jobs, figures.unknown, figures.days) == (len(first), 1, len(first))
    assert figures.median == pytest.approx(statistics.median(first))
    assert figures.mean == pytest.approx(statistics.fmean(first))
    assert figures.p90 == pytest.approx(np.percentile(first, 90))
    assert figures.raw is None
    assert effect.delta == pytest.approx(2 * u / len(first) / len(other) - 1)


@given(JOBS, JOBS)
def test_weights_are_direct_standardisation(first, other):
    """Weighted means equal means by stratum, averaged with one standard for both arms."""
    sides = []
    for jobs in (first, other):
        by_stratum = defaultdict(list)
        for value, stratum in jobs:
            by_stratum[stratum].append(value)
        sides.append(by_stratum)
    shared = sides[0].keys() & sides[1].keys()
    totals = [sum(len(side[k]) for k in shared) for side in sides]
    harmonic = {
        k: 1 / sum(total / len(side[k]) for side, total in zip(sides, totals, strict=True))
        for k in shared
    }
    result = x(
        [
            simple_arm(*zip(*[(v, d, s) for d, (v, s) in enumerate(jobs)], strict=True))
            for jobs in (first, other)
        ]
    )

    if not shared:
        assert result.effects[0].refusal is Refusal.NO_SHARED_STRATUM
        return
    for figures, side in zip(result.arms, sides, strict=True):
        expected = sum(harmonic[k] * statistics.fmean(side[k]) for k in shared)
        assert figures.mean == pytest.approx(expected / sum(harmonic.values()))


def test_arms_with_the_same_mix_have_equal_weights():
    weights = balance(
        [simple_arm([1] * 4, range(4), [0, 0, 1, 1]), simple_arm([1] * 2, range(2), [1, 0])]
    )

    assert weights.weights.tolist() == [[1, 1], [1, 1]]
    assert weights.matched.tolist() == [1, 1]


def test_a_mix_that_differs_explains_a_ratio_of_raw_medians():
    """Large jobs open ten times as much; only their number changes."""
    rng = np.random.default_rng(3)
    arms = []
    for first_day, large in ((0, 0.2), (50, 0.8)):
        strata = (rng.random(2_000) < large).astype(int)
        values = 100 * 10**strata * rng.lognormal(0, 0.1, 2_000)
        arms.append(simple_arm(values, first_day + rng.integers(0, 20, 2_000), strata))
    comparison = compare(arms, ["x"])
    row = comparison.metrics["x"]

    assert row.arms[1].raw.median > 5 * row.arms[0].raw.median
    assert row.arms[1].mean == pytest.approx(row.arms[0].mean, rel=0.02)
    assert row.effects[0].verdict is not Verdict.CHANGED
    assert comparison.arms[1].imbalance == pytest.approx(0.6, abs=0.05)


def test_the_interval_is_that_of_a_bootstrap_of_days():
    """Resample days with replacement and take medians of all jobs, one resample at a time."""
    rng = np.random.default_rng(5)
    days = 25
    arms = [
        arm(rng, jobs=1_500, days=days, sigma=0.3, first_day=first, shapes=[skewed])
        for first in (0, 100)
    ]
    by_day = [[one.values["skewed"][one.days == day] for day in one.known_days] for one in arms]
    logs = []
    for _ in range(1_500):
        medians = [
            np.median(np.concatenate([side[k] for k in rng.integers(0, days, days)]))
            for side in by_day
        ]
        logs.append(np.log(medians[1] / medians[0]))
    center = np.log(np.median(arms[1].values["skewed"]) / np.median(arms[0].values["skewed"]))
    widening = student.ppf(0.975, 2 * days - 2) / 1.96 * (days / (days - 1)) ** 0.5
    expected = center + widening * (np.quantile(logs, (0.025, 0.975)) - center)
    [effect] = compare(arms, ["skewed"]).metrics["skewed"].effects

    assert np.log(effect.estimate) == pytest.approx(center)
    assert np.log([effect.low, effect.high]) == pytest.approx(expected, abs=0.1 * np.ptp(expected))


@pytest.mark.parametrize("common", [False, True], ids=["other days", "the same days"])
def test_the_test_is_a_t_test_of_daily_medians(common):
    rng = np.random.default_rng(7)
    shift = 0 if common else 40
    sides = [
        arm(rng, jobs=200, days=12, sigma=0.2, first_day=day, shapes=[skewed], every=2)
        for day in (0, shift)
    ]
    logs = [
        [np.log(statistics.median(side.values["skewed"][side.days == d])) for d in side.known_days]
        for side in sides
    ]
    test = ttest_rel(*logs) if common else ttest_ind(*logs, equal_var=False)
    row = compare(sides, ["skewed"]).metrics["skewed"]

    assert np.log(row.arms[0].daily.medians) == pytest.approx(logs[0])
    assert row.effects[0].p == pytest.approx(test.pvalue)


def test_daily_medians_of_mostly_zeros_are_zero():
    rng = np.random.default_rng(9)
    sides = [
        simple_arm(
            np.where(rng.random(600) < 0.9, 0, rng.lognormal(3, 1, 600)),
            first + np.arange(600) % 7,
        )
        for first in (0, 100)
    ]

    row = compare(sides, ["x"]).metrics["x"]

    assert not any(side.daily.medians.any() for side in row.arms)
    assert row.effects[0].p == 1


@given(st.integers(0, 10_000))
def test_exchanged_arms_have_the_reciprocal_ratio(seed):
    rng = np.random.default_rng(seed)
    arms = [
        simple_arm(rng.lognormal(5, 1, 80), first + rng.integers(0, 9, 80), rng.integers(0, 3, 80))
        for first in (0, 20)
    ]
    [forth], [back] = (x(sides).effects for sides in (arms, arms[::-1]))

    assert forth.estimate == pytest.approx(1 / back.estimate)
    assert (forth.low, forth.p, forth.delta) == pytest.approx(
        (1 / back.high, back.p, -back.delta), rel=0.02
    )


def test_a_control_removes_what_happened_to_everyone():
    """The site got two times slower after the date; the treated jobs got four times faster."""
    rng = np.random.default_rng(11)
    sides = {"treated": [], "control": []}
    for first_day, site in ((0, 1.0), (30, 2.0)):
        common = rng.normal(0, 0.4, 20)
        for name, effect in (("treated", 0.25 if first_day else 1.0), ("control", 1.0)):
            sides[name].append(
                arm(
                    rng,
                    jobs=800,
                    days=20,
                    sigma=0,
                    first_day=first_day,
                    shapes=[narrow],
                    effect=effect * site,
                    day_effects=common,
                )
            )
    row = compare(sides["treated"], ["narrow"], control=sides["control"]).metrics["narrow"]
    [own], [controlled] = row.effects, row.controlled

    assert controlled.verdict is Verdict.CHANGED
    assert own.estimate == pytest.approx(0.5, rel=0.5)
    assert controlled.low < 0.25 < controlled.high
    # Days have more in common than what remains.
    assert controlled.high / controlled.low < 1.4 < own.high / own.low


@pytest.mark.parametrize("days", [12, 5], ids=["most days in common", "few days in common"])
def test_a_controlled_effect_is_tested_by_common_days_if_they_are_many(days):
    """Otherwise by the daily medians of all four arms."""
    rng = np.random.default_rng(17)
    treated, control = (
        [
            arm(
                rng,
                jobs=15 * count,
                days=count,
                sigma=0.3,
                first_day=first,
                shapes=[narrow],
                every=2,
            )
            for first in (0, 40)
        ]
        for count in (days, 14)
    )
    logs = [
        [
            np.log([statistics.median(side.values["narrow"][side.days == d]) for d in known])
            for side, known in ((side, side.known_days) for side in sides)
        ]
        for sides in (treated, control)
    ]
    is_paired = days > 7
    if is_paired:
        parts = [own - other[:days] for own, other in zip(*logs, strict=True)]
    else:
        parts = [*logs[0], *logs[1]]
    means = [part.mean() for part in parts]
    level = means[1] - means[0] - (0 if is_paired else means[3] - means[2])
    variances = np.array([part.var(ddof=1) / part.size for part in parts])
    freedom = variances.sum() ** 2 / (variances**2 / [part.size - 1 for part in parts]).sum()
    [effect] = compare(treated, ["narrow"], control=control).metrics["narrow"].controlled

    assert effect.is_paired is is_paired
    assert effect.p == pytest.approx(2 * student.sf(abs(level) / variances.sum() ** 0.5, freedom))


def test_a_ramp_without_effect_reports_the_smallest_effect():
    """An effect of this size is detected in four of five comparisons."""
    smallest = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        sides = [
            arm(rng, jobs=300, days=14, sigma=0.2, first_day=f, shapes=[narrow], every=2)
            for f in (0, 50)
        ]
        [effect] = compare(sides, ["narrow"]).metrics["narrow"].effects
        smallest.append(effect.smallest)
    typical = 1 + statistics.median(smallest)
    detected = 0
    runs = examples(60)
    for seed in range(runs):
        rng = np.random.default_rng(1_000 + seed)
        sides = [
            arm(
                rng,
                jobs=300,
                days=14,
                sigma=0.2,
                first_day=first,
                shapes=[narrow],
                effect=effect,
                every=2,
            )
            for first, effect in ((0, 1.0), (50, typical))
        ]
        [effect] = compare(sides, ["narrow"]).metrics["narrow"].effects
        detected += effect.verdict is Verdict.CHANGED

    assert 1.15 < typical < 1.35
    assert 0.65 < detected / runs < 0.95


def test_equal_run_times_are_equivalent():
    rng = np.random.default_rng(2)
    sides = [
        arm(rng, jobs=3_000, days=30, sigma=0.01, first_day=f, shapes=[narrow]) for f in (0, 50)
    ]
    wide, strict = (
        compare(sides, ["narrow"], margin=margin).metrics["narrow"].effects[0]
        for margin in (0.03, 0.001)
    )

    assert wide.verdict is Verdict.EQUIVALENT
    assert 0.97 < wide.low < 1 < wide.high < 1.03
    assert (strict.verdict, strict.is_within_margin) == (Verdict.NO_CHANGE_DETECTED, False)


def test_a_median_of_zero_gives_a_difference():
    days = np.arange(60) % 10
    first, other = np.zeros(60), 5.0 + np.arange(60) % 3
    [effect] = x([simple_arm(first, days), simple_arm(other, 20 + days)]).effects

    assert (effect.scale, effect.verdict) == (Scale.DIFFERENCE, Verdict.CHANGED)
    assert (effect.estimate, effect.delta) == (6, 1)
    assert 5 <= effect.low <= 6 <= effect.high <= 7


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        pytest.param(([], [], []), Refusal.NO_SHARED_STRATUM, id="no jobs"),
        pytest.param(([np.nan] * 20, range(20), [0] * 20), Refusal.NO_VALUES, id="unknown"),
        pytest.param((range(9), range(9), [0] * 9), Refusal.FEW_JOBS, id="nine jobs"),
        pytest.param((range(20), [1, 2, 3, 4] * 5, [0] * 20), Refusal.FEW_DAYS, id="four days"),
        pytest.param(
            (range(200), [*range(10), *[0] * 190], [0] * 200), Refusal.FEW_DAYS, id="one large day"
        ),
        pytest.param((range(20), range(20), [1] * 20), Refusal.NO_SHARED_STRATUM, id="other sizes"),
    ],
)
def test_too_little_data_has_no_conclusion(other, reason):
    [effect] = x([simple_arm(range(40), np.arange(40) % 10), simple_arm(*other)]).effects

    assert (effect.verdict, effect.refusal) == (Verdict.REFUSED, reason)
    assert (effect.low, effect.high, effect.p, effect.smallest) == (None, None, None, None)


def test_independent_runs_are_tested_by_their_values():
    first, other = [725.7, 731.0, 719.9, 728.2, 722.0], [664.7, 661.0, 671.2, 668.8, 659.9]
    [effect] = x(
        [simple_arm(first, range(5)), simple_arm(other, range(5, 10))], are_runs=True
    ).effects

    assert effect.p == pytest.approx(mannwhitneyu(first, other).pvalue)
    assert effect.verdict is Verdict.CHANGED
    assert effect.estimate == pytest.approx(664.7 / 725.7)
    assert 0.89 < effect.low < effect.estimate < effect.high < 0.94
    few = x([simple_arm(first[:3], range(3)), simple_arm(other, range(5, 10))], are_runs=True)
    assert few.effects[0].refusal is Refusal.FEW_RUNS


def test_drift_inside_an_arm_is_reported():
    rng = np.random.default_rng(13)
    days = np.repeat(np.arange(20), 30)
    steady, rising = (rng.lognormal(0, 0.1, 600) * 1.05 ** (days * grows) for grows in (0, 1))
    row = x([simple_arm(steady, days), simple_arm(rising, 30 + days)])

    assert row.arms[0].drift is None
    assert row.arms[1].drift.change == pytest.approx(1.05**19 - 1, rel=0.2)
    assert row.arms[1].drift.adjusted_p < 0.001


def test_p_values_are_adjusted_as_holm_did():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


def test_every_arm_is_compared_with_the_first():
    arms = [
        simple_arm(
            factor * (1 + np.arange(60) % 7),
            30 * number + np.arange(60) % 10,
            users=np.arange(60) % 4,
        )
        for number, factor in enumerate((1, 2, 3))
    ]
    comparison = compare(arms, ["x"])

    assert [effect.estimate for effect in comparison.metrics["x"].effects] == pytest.approx([2, 3])
    assert Counter((a.jobs, a.days, a.users, a.largest_user_share) for a in comparison.arms) == {
        (60, 10, 4, 0.25): 3
    }


@given(st.integers(0, 10_000), st.sampled_from([60, 700]))
def test_the_order_of_the_jobs_does_not_matter(seed, jobs):
    """Many values are equal, with different weights and on different days."""
    rng = np.random.default_rng(seed)
    sides = [
        (rng.integers(0, 40, jobs), first + rng.integers(0, 9, jobs), rng.choice(3, jobs, p=mix))
        for first, mix in ((0, (0.6, 0.3, 0.1)), (20, (0.2, 0.3, 0.5)))
    ]
    orders = [rng.permutation(jobs) for _ in sides]
    shuffled = [[each[order] for each in side] for side, order in zip(sides, orders, strict=True)]
    row, other = (x([simple_arm(*side) for side in each]) for each in (sides, shuffled))
    [effect], [same] = row.effects, other.effects

    assert same.delta == pytest.approx(effect.delta, abs=1e-12)
    assert (same.estimate, same.low, same.high, same.p) == (
        effect.estimate, effect.low, effect.high, effect.p
    )  # fmt: skip
    for figures, again in zip(row.arms, other.arms, strict=True):
        assert again.quantiles == figures.quantiles
        assert again.daily.medians.tolist() == figures.daily.medians.tolist()
        assert again.mean == pytest.approx(figures.mean)


def test_metrics_with_another_meaning_are_refused_with_a_control_too():
    rng = np.random.default_rng(3)
    sides = [
        arm(rng, jobs=100, days=14, sigma=0.2, first_day=day, shapes=[skewed, narrow])
        for day in (0, 14)
    ]
    rows = compare(sides, ["skewed", "narrow"], control=sides, redefined=["skewed"]).metrics

    for effects in (rows["skewed"].effects, rows["skewed"].controlled):
        assert effects[0].refusal is Refusal.REDEFINED
        assert effects[0].estimate is None
    assert rows["narrow"].effects[0].refusal is None
