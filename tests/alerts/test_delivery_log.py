"""The log of attempts to deliver a mail."""

import pytest

from ioportal.alerts import planning
from ioportal.alerts.delivery import outbox
from ioportal.alerts.models import DeliveryAttempt, Notification

State = Notification.State


@pytest.fixture
def waiting(storm, automatic):
    """Write the mail about the storm."""
    planning.plan()
    return Notification.objects.get()


def log_of(notification):
    """Return outcome and response of each attempt."""
    return list(notification.delivery_log.values_list("outcome", "response"))


def test_each_attempt_is_logged_with_the_answer_of_the_server(waiting, mails):
    mails.faults = ["450 busy", "550 no such user"]
    for _ in range(2):
        Notification.objects.update(next_attempt_at=waiting.created_at)
        outbox.send_due(10)

    assert log_of(waiting) == [(State.WAITING, "450 busy"), (State.FAILED, "550 no such user")]

    outbox.release(waiting, by="sam")
    outbox.send_due(10)

    assert log_of(waiting)[2:] == [(State.SENT, "250 Queued")]


def test_a_lost_answer_is_logged_once(waiting, mails):
    mails.faults = ["dies after DATA"]
    outbox.send_due(10)
    outbox.recover()

    [(outcome, response)] = log_of(waiting)
    assert outcome == State.UNCERTAIN
    assert response


@pytest.mark.parametrize(
    ("before", "outcome"), [(State.SENDING, State.WAITING), (State.ENDING, State.UNCERTAIN)]
)
def test_an_attempt_of_an_ended_worker_is_logged(waiting, before, outcome):
    Notification.objects.update(state=before, claim=waiting.token)

    outbox.recover()

    [(logged, response)] = log_of(waiting)
    assert logged == outcome
    assert response.startswith("The worker ended before")
    outbox.recover()
    assert DeliveryAttempt.objects.count() == 1
