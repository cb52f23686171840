"""How often intervals and tests are wrong, over many simulated comparisons without an effect.

`make test-deep` simulates a hundred times as many.
"""

import numpy as np
import pytest

from ioportal.jobs.analysis.comparison.comparing import compare
from ioportal.jobs.analysis.comparison.results import Scale, Verdict
from tests.jobs.analysis.comparison.populations import SHAPES, arm, narrow
from tests.properties import examples

NAMES = [shape.__name__ for shape in SHAPES]
COVERED, REJECTED = 0.93, 0.05
pytestmark = pytest.mark.hypothesis  # of `make test-deep`


def simulated(jobs, days, sigma, runs):
    """Yield the effects of comparisons of arms from the same population."""
    rng = np.random.default_rng([jobs, days, round(10 * sigma)])
    for _ in range(runs):
        arms = [arm(rng, jobs=jobs, days=days, sigma=sigma, first_day=first) for first in (0, 100)]
        rows = compare(arms, NAMES).metrics.values()
        yield [row.effects[0] for row in rows]


def covers(effect):
    return effect.low <= (effect.scale is Scale.RATIO) <= effect.high


@pytest.mark.parametrize("sigma", [0.2, 0.4])
@pytest.mark.parametrize(("jobs", "days"), [(30, 8), (400, 12)])
def test_intervals_cover_and_tests_reject_as_they_promise(jobs, days, sigma):
    runs = examples(40)
    effects = list(simulated(jobs, days, sigma, runs))

    for number, name in enumerate(NAMES):
        covered = sum(covers(row[number]) for row in effects) / runs
        rejected = sum(row[number].p < REJECTED for row in effects) / runs
        assert covered >= COVERED - 2 * error(COVERED, runs), name
        assert rejected <= REJECTED + 3 * error(REJECTED, runs), name
    changed = sum(any(e.verdict is Verdict.CHANGED for e in row) for row in effects) / runs
    assert changed <= REJECTED + 2 * error(REJECTED, runs)


@pytest.mark.parametrize(("rho", "found"), [(0, 0.9), (0.5, 0.6), (0.8, 0.25)])
def test_correlated_days_are_no_changes_and_large_effects_are_found(rho, found):
    rng = np.random.default_rng(5)
    days, runs = 14, examples(40)
    changed = {1.0: 0, 0.25: 0}
    for effect in changed:
        for _ in range(runs):
            daily = correlated(rng, 2 * days, rho)
            sides = [
                arm(
                    rng, jobs=30 * days, days=days, sigma=0, first_day=first, shapes=[narrow],
                    effect=times, day_effects=0.3 * daily[first : first + days],
                )
                for first, times in ((0, 1.0), (days, effect))
            ]  # fmt: skip
            [row] = compare(sides, ["narrow"]).metrics.values()
            changed[effect] += row.effects[0].verdict is Verdict.CHANGED

    assert changed[1.0] / runs <= REJECTED + 2 * error(REJECTED, runs)
    assert changed[0.25] / runs >= found


def correlated(rng, days, rho):
    """Return effects of days with a correlation of neighbours."""
    effects = rng.normal(size=days)
    for day in range(1, days):
        effects[day] = rho * effects[day - 1] + (1 - rho**2) ** 0.5 * effects[day]
    return effects


def error(share, runs):
    return (share * (1 - share) / runs) ** 0.5
