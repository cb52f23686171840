"""What happens after a mail, with the time as an argument."""

from datetime import UTC, datetime, timedelta

import pytest

from ioportal.alerts.outcomes import Outcome, Step, next_step, outcome

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


@pytest.mark.parametrize("found", Outcome)
def test_a_disputed_mail_is_left_to_staff(found):
    step = next_step([found], Step.NONE, NOW - 2 * WEEK, NOW, after=WEEK, is_disputed=True)

    assert step is Step.NONE
