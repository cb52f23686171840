"""What happens after a mail, with the time as an argument."""

from datetime import UTC, datetime, timedelta

import pytest

from ioportal.alerts.outcomes import Outcome, Step, is_lifted, next_step, outcome

NOW = datetime(2017, 7, 20, 12, 0, tzinfo=UTC)
WEEK = timedelta(days=7)


@pytest.mark.parametrize(
    ("before", "after", "jobs", "expected"),
    [
        (2.1e6, 0.5e6, 8, Outcome.IMPROVED),
        (2.1e6, 1.5e6, 8, Outcome.PARTLY),
        (2.1e6, 2.3e6, 8, Outcome.UNCHANGED),
        (2.1e6, 0.5e6, 2, Outcome.UNKNOWN),
        (None, 0.5e6, 8, Outcome.UNKNOWN),
        (2.1e6, None, 0, Outcome.UNKNOWN),
    ],
)
def test_an_outcome_needs_jobs_and_a_clear_change(before, after, jobs, expected):
    assert outcome(before, after, jobs) is expected


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
        ([Outcome.UNKNOWN], Step.NONE, 30, Step.NONE),
    ],
)
def test_the_next_step_follows_from_the_outcomes(outcomes, last, days, expected):
    last_at = NOW - timedelta(days=days)

    assert next_step(outcomes, last, last_at, NOW, after=WEEK, is_disputed=False) is expected


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (Step.NONE, Step.GREEN_LIGHT),
        (Step.THANKS, Step.GREEN_LIGHT),
        (Step.REMINDER, Step.GREEN_LIGHT),
        (Step.GREEN_LIGHT, Step.NONE),
    ],
)
def test_a_lifted_request_gets_the_green_light_once(last, expected):
    step = next_step(
        [Outcome.IMPROVED], last, NOW, NOW, after=WEEK, is_disputed=False, are_lifted=True
    )

    assert step is expected


@pytest.mark.parametrize(
    ("found", "jobs", "days", "expected"),
    [
        pytest.param(Outcome.IMPROVED, 3, 7, True, id="a calm week"),
        pytest.param(Outcome.IMPROVED, 3, 6, False, id="a finding six days ago"),
        pytest.param(Outcome.IMPROVED, 2, 30, False, id="too few jobs"),
        pytest.param(Outcome.PARTLY, 9, 30, False, id="little better"),
    ],
)
def test_a_request_is_lifted_by_calm_jobs(found, jobs, days, expected):
    assert is_lifted(found, jobs, NOW - timedelta(days=days), NOW, WEEK) is expected


@pytest.mark.parametrize("found", Outcome)
def test_a_disputed_mail_is_left_to_staff(found):
    step = next_step([found], Step.NONE, NOW - 2 * WEEK, NOW, after=WEEK, is_disputed=True)

    assert step is Step.NONE
