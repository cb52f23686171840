import pytest

from ioportal.changes.comparison_sentences import cautions, sentence
from ioportal.jobs.analysis.comparison.arms import Arm
from ioportal.jobs.analysis.comparison.comparing import compare
from ioportal.jobs.analysis.comparison.results import Effect, Refusal, Scale, Verdict
from ioportal.metrics import BY_NAME, PANDA_METRICS
from tests.jobs.analysis.comparison.populations import simple_arm

OPENS, READ = BY_NAME["opens"], BY_NAME["read_bytes"]
RUN_TIME = PANDA_METRICS[0]


def changed(estimate, low, high, **facts):
    return Effect(Verdict.CHANGED, estimate=estimate, low=low, high=high, **facts)


@pytest.mark.parametrize(
    ("metric", "effect", "expected"),
    [
        (OPENS, changed(1 / 4.1, 1 / 4.5, 1 / 3.7), "Opens fell 4.10\u00d7 (3.70 to 4.50)."),
        (OPENS, changed(6_300 / 1_500, 4, 4.5), "Opens rose 4.20\u00d7 (4.00 to 4.50)."),
        (
            OPENS,
            changed(1 / 4.03, 1 / 4.034, 1 / 4.026),
            "Opens fell 4.030\u00d7 (4.026 to 4.034).",
        ),
        (OPENS, changed(1 / 128, 1 / 128.01, 1 / 128), "Opens fell 128\u00d7 (\u00b1 <0.1 %)."),
        (OPENS, changed(0.998, 0.9976, 0.9984), "Opens fell 0.20 % (0.16 % to 0.24 %)."),
        (RUN_TIME, changed(0.9, 0.85, 0.96), "Run time fell 10.0 % (4.0 % to 15.0 %)."),
        (
            RUN_TIME,
            changed(1.01, 1.005, 1.015, is_within_margin=True),
            "Run time rose 1.0 % (0.5 % to 1.5 %), within \u00b1 3 % at 95 %.",
        ),
        (
            READ,
            changed(5e9, 4e9, 6e9, scale=Scale.DIFFERENCE),
            "Read rose by 5.00 GB (4.00 GB to 6.00 GB).",
        ),
        (RUN_TIME, Effect(Verdict.EQUIVALENT, margin=0.05), "Run time: within \u00b1 5 % at 95 %."),
        (
            RUN_TIME,
            Effect(Verdict.NO_CHANGE_DETECTED, smallest=0.05),
            "Run time: no detectable change; 5.0 % would have been seen.",
        ),
        (
            OPENS,
            Effect(Verdict.NO_CHANGE_DETECTED, smallest=1.5),
            "Opens: unknown; only a change of 2.50\u00d7 would have been seen.",
        ),
        (
            OPENS,
            Effect(Verdict.NO_CHANGE_DETECTED, estimate=1.52, low=1.2, high=1.85, smallest=0.7),
            "Opens: possibly rose 1.52\u00d7 (1.20 to 1.85), not confirmed by the test.",
        ),
        (
            OPENS,
            Effect(Verdict.REFUSED, Refusal.FEW_JOBS),
            "Opens: no conclusion, fewer than 10 jobs with a known value in an arm.",
        ),
    ],
)
def test_conclusions_are_sentences(metric, effect, expected):
    assert sentence(metric, effect) == expected


@pytest.mark.parametrize(
    ("effect", "expected"),
    [
        (changed(2, 1.8, 2.2), "Opens: 2.00\u00d7 higher (1.80 to 2.20)."),
        (changed(0.9, 0.88, 0.92), "Opens: 10.0 % lower (8.0 % to 12.0 %)."),
        (
            Effect(Verdict.NO_CHANGE_DETECTED, smallest=0.05),
            "Opens: no detectable difference; 5.0 % would have been seen.",
        ),
    ],
)
def test_different_jobs_are_higher_or_lower(effect, expected):
    assert sentence(OPENS, effect, is_contrast=True) == expected


def test_cautions_name_arms_and_figures():
    days = [day for day in range(20) for _ in range(5)]
    before = simple_arm([2**day for day in days], days, users=[1] * 80 + [2] * 20)
    after = simple_arm([7] * 100, days, strata=[0] * 30 + [1] * 70)
    arms = [Arm({"opens": a.values["x"]}, a.days, a.users, a.strata) for a in (before, after)]

    found = cautions(compare(arms, ["opens"]), ["2016", "2017"], BY_NAME, "node counts")

    assert "\n".join(found) == (
        "80.0 % of the jobs of 2016 are of one user.\n"
        "The node counts of 2017 differ from the first arm, by up to 70.0 percentage points. "
        "Weights make the compared jobs equal.\n"
        "Only 30.0 % of the jobs of 2017 have node counts that all arms have. "
        "The others are left out.\n"
        "Opens drifted by +52,428,700 % over the days of 2016."
    )
