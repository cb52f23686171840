"""How often intervals and tests are wrong, over many simulated comparisons without an effect.

`make test-deep` simulates a hundred times as many.
"""

import numpy as np
import pytest

from ioportal.analysis.comparison.comparing import compare
from ioportal.analysis.comparison.results import Scale, Verdict
from tests.analysis.comparison.populations import SHAPES, arm
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


def error(share, runs):
    return (share * (1 - share) / runs) ** 0.5
