import pytest

from ioportal.changes.analysis.expectations import (
    FALL,
    RISE,
    Agreement,
    ExpectedRatio,
    agreement,
    joint,
)
from ioportal.jobs.analysis.comparison.results import Effect, Refusal, Scale, Verdict

QUARTER, SAME = ExpectedRatio(0.25, 0.25), ExpectedRatio(1, 1)


def effect(estimate, low, high, **facts):
    return Effect(
        **{"verdict": Verdict.CHANGED, "estimate": estimate, "low": low, "high": high, **facts}
    )


def undetected(low, high):
    return effect(1, low, high, verdict=Verdict.NO_CHANGE_DETECTED)


@pytest.mark.parametrize(
    ("expected", "measured", "agrees"),
    [
        (QUARTER, effect(0.26, 0.24, 0.28), Agreement.AS_EXPECTED),
        (QUARTER, effect(0.248, 0.248, 0.248), Agreement.AS_EXPECTED),  # 4.03 times: rounded
        (QUARTER, effect(0.5, 0.4, 0.6), Agreement.LESS),
        (QUARTER, effect(0.1, 0.08, 0.12), Agreement.MORE),
        (QUARTER, effect(2, 1.5, 2.5), Agreement.OPPOSITE),
        (QUARTER, undetected(0.7, 1.3), Agreement.ABSENT),
        (QUARTER, undetected(0.2, 3), Agreement.UNCERTAIN),
        (ExpectedRatio(4, 4), effect(2, 1.5, 2.5), Agreement.LESS),
        (ExpectedRatio(4, 4), effect(9, 8, 10), Agreement.MORE),
        (FALL, effect(0.9, 0.85, 0.95), Agreement.AS_EXPECTED),
        (RISE, effect(0.9, 0.85, 0.95), Agreement.OPPOSITE),
        (FALL, undetected(0.9, 1.1), Agreement.UNCERTAIN),
        (
            FALL,
            effect(0.99, 0.98, 1, verdict=Verdict.EQUIVALENT, is_within_margin=True),
            Agreement.ABSENT,
        ),
        (SAME, undetected(0.9, 1.1), Agreement.UNCERTAIN),
        (
            SAME,
            effect(1, 0.99, 1.01, verdict=Verdict.EQUIVALENT, is_within_margin=True),
            Agreement.AS_EXPECTED,
        ),
        (SAME, effect(0.5, 0.4, 0.6), Agreement.UNEXPECTED),
        (QUARTER, effect(-7, -9, -5, scale=Scale.DIFFERENCE), Agreement.EXPECTED_DIRECTION),
        (QUARTER, effect(7, 5, 9, scale=Scale.DIFFERENCE), Agreement.OPPOSITE),
        (QUARTER, Effect(Verdict.REFUSED, Refusal.FEW_DAYS), None),
    ],
)
def test_a_measured_effect_agrees_with_the_expectation_or_not(expected, measured, agrees):
    assert agreement(expected, measured) is agrees


@pytest.mark.parametrize(
    ("each", "together"),
    [
        ([QUARTER, ExpectedRatio(0.5, 0.5)], "falls 8\u00d7"),
        ([QUARTER, FALL], "falls at least 4\u00d7"),
        ([FALL, FALL], "falls"),
        ([RISE, ExpectedRatio(3, 3).inverse.inverse], "rises at least 3\u00d7"),
        ([QUARTER, QUARTER.inverse], "does not change"),
        ([QUARTER, FALL.inverse], None),
        ([QUARTER, None], None),
    ],
)
def test_expectations_of_changes_together_are_multiplied(each, together):
    expected = joint(each)

    assert (expected and expected.in_words(plural=False)) == together
