"""What happens after a mail, with the time as an argument."""

from datetime import UTC, datetime, timedelta

import pytest

from ioportal.alerts.outcomes import Outcome, Step, is_lifted, next_step, outcome
from ioportal.jobs.analysis.comparison.results import (
    ArmFigures,
    Effect,
    MetricComparison,
    Refusal,
    Verdict,
)

NOW = datetime(2017, 7, 20, 12, 0, tzinfo=UTC)
WEEK = timedelta(days=7)


def comparison(effect, before=2.1e6, after=2.1e6):
    arms = (ArmFigures(20, 0, 7, 20.0, before), ArmFigures(20, 0, 7, 20.0, after))
    return MetricComparison(arms, (effect,))


REFUSED = Effect(Verdict.REFUSED, Refusal.FEW_DAYS, estimate=0.2)
CHANGED = Effect(Verdict.CHANGED, estimate=0.2, low=0.1, high=0.3)
RISEN = Effect(Verdict.CHANGED, estimate=1.5, low=1.4, high=1.6)
EQUIVALENT = Effect(Verdict.EQUIVALENT, estimate=1.0, low=0.99, high=1.01, is_within_margin=True)
POSSIBLE = Effect(Verdict.NO_CHANGE_DETECTED, estimate=0.4, low=0.2, high=0.9, smallest=0.8)
OPEN = Effect(Verdict.NO_CHANGE_DETECTED, estimate=0.9, low=0.2, high=4.0, smallest=1.5)
SAME = Effect(Verdict.NO_CHANGE_DETECTED, estimate=1.0, low=0.9, high=1.1, smallest=0.2)


@pytest.mark.parametrize(
    ("compared", "recurrences", "expected"),
    [
        (comparison(CHANGED, after=1.0e6), 0, Outcome.IMPROVED),
        (comparison(CHANGED, after=1.0e6), 3, Outcome.IMPROVED),
        (comparison(CHANGED, after=1.5e6), 0, Outcome.PARTLY),
        (comparison(RISEN, after=3.2e6), 0, Outcome.UNCHANGED),
        (comparison(SAME), 0, Outcome.UNCHANGED),
        (comparison(EQUIVALENT), 0, Outcome.UNCHANGED),
        (comparison(REFUSED, after=0.4e6), 0, Outcome.UNKNOWN),
        (comparison(POSSIBLE, after=0.8e6), 0, Outcome.UNKNOWN),
        (comparison(OPEN, after=1.9e6), 0, Outcome.UNKNOWN),
        (comparison(REFUSED, after=0.4e6), 1, Outcome.RECURRED),
        (None, 0, Outcome.UNKNOWN),
        (None, 1, Outcome.RECURRED),
    ],
)
def test_an_outcome_needs_a_clear_comparison_or_findings(compared, recurrences, expected):
    assert outcome(compared, recurrences) is expected


@pytest.mark.parametrize(
    ("outcomes", "last", "days", "expected"),
    [
        ([Outcome.IMPROVED], Step.NONE, 1, Step.THANKS),
        ([Outcome.IMPROVED], Step.REMINDER, 1, Step.THANKS),
        ([Outcome.IMPROVED], Step.THANKS, 9, Step.NONE),
        ([Outcome.IMPROVED, Outcome.UNKNOWN], Step.NONE, 1, Step.THANKS),
        ([Outcome.IMPROVED, Outcome.PARTLY], Step.NONE, 9, Step.NONE),
        ([Outcome.UNCHANGED], Step.NONE, 6, Step.NONE),
        ([Outcome.UNCHANGED], Step.NONE, 7, Step.REMINDER),
        ([Outcome.UNCHANGED, Outcome.IMPROVED], Step.NONE, 7, Step.REMINDER),
        ([Outcome.UNCHANGED], Step.REMINDER, 7, Step.ESCALATION),
        ([Outcome.UNCHANGED], Step.ESCALATION, 30, Step.NONE),
        ([Outcome.RECURRED], Step.NONE, 7, Step.REMINDER),
        ([Outcome.UNKNOWN], Step.NONE, 30, Step.NONE),
    ],
)
def test_the_next_step_follows_from_the_outcomes(outcomes, last, days, expected):
    last_at = NOW - timedelta(days=days)

    assert next_step(outcomes, last, last_at, NOW, after=WEEK, is_disputed=False) is expected


@pytest.mark.parametrize(
    ("last", "days", "expected"),
    [
        (Step.NONE, 9, Step.THANKS),
        (Step.THANKS, 6, Step.NONE),
        (Step.THANKS, 7, Step.GREEN_LIGHT),
        (Step.REMINDER, 9, Step.THANKS),
        (Step.GREEN_LIGHT, 9, Step.NONE),
    ],
)
def test_a_lifted_request_gets_the_green_light_once_after_thanks(last, days, expected):
    last_at = NOW - timedelta(days=days)
    step = next_step(
        [Outcome.IMPROVED], last, last_at, NOW, after=WEEK, is_disputed=False, are_lifted=True
    )

    assert step is expected


@pytest.mark.parametrize(
    ("found", "jobs", "days", "expected"),
    [
        pytest.param(Outcome.IMPROVED, 3, 7, True, id="a calm week"),
        pytest.param(Outcome.IMPROVED, 3, 6, False, id="a finding six days ago"),
        pytest.param(Outcome.IMPROVED, 2, 30, False, id="too few jobs"),
        pytest.param(Outcome.PARTLY, 9, 30, False, id="little better"),
        pytest.param(Outcome.UNKNOWN, 9, 30, False, id="an unclear change"),
    ],
)
def test_a_request_is_lifted_by_calm_jobs(found, jobs, days, expected):
    assert is_lifted(found, jobs, NOW - timedelta(days=days), NOW, WEEK) is expected


@pytest.mark.parametrize("found", Outcome)
def test_a_disputed_mail_is_left_to_staff(found):
    step = next_step([found], Step.NONE, NOW - 2 * WEEK, NOW, after=WEEK, is_disputed=True)

    assert step is Step.NONE
