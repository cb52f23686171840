"""After a mail: its effect on the recipient's jobs, and what follows."""

from datetime import timedelta

import pytest
from django.utils import timezone

from ioportal.alerts import outbox, planning
from ioportal.alerts.follow_ups import follow_up
from ioportal.alerts.models import (
    Answer,
    BouncedAddress,
    CaseDecision,
    MailPolicy,
    Notification,
    NotificationCase,
    Silence,
)
from ioportal.flags.models import Case, CaseEvent
from ioportal.site.models import UserAccount
from tests import loading, untraced
from tests.logs import at

WEEK = timedelta(days=7)
CALM, STORMS = 3 * untraced.CALM_REQUESTS, 3 * untraced.STORM_REQUESTS  # a minute, of three jobs
AFTER_THE_STORM = at("12:09:30")


@pytest.fixture
def mailed(storm, automatic, mails, logs):
    """Send a mail as if just after the storm; then load later jobs with requests a minute."""

    def before(requests):
        planning.plan()
        outbox.send_due(10)
        Notification.objects.update(finished_at=AFTER_THE_STORM)
        untraced.ingest_later(logs, requests)
        loading.evaluate()
        return Notification.objects.get()

    return before


def test_calmer_jobs_are_a_reason_to_say_thank_you(mailed, mails, storm):
    first = mailed(CALM)

    assert follow_up(at("12:30")) == 1
    outbox.send_due(10)

    about = NotificationCase.objects.get(notification=first)
    assert about.outcome == "improved"
    assert "median of 1 before, 3 since then" in about.effect
    _, (recipients, thanks) = mails.accepted
    assert recipients == ["alice@example.org"]
    assert thanks["In-Reply-To"] == f"<{first.token}@localhost>"
    assert thanks["Subject"] == f"Re: {first.subject}"
    assert "Thank you: your jobs have improved" in thanks.get_body(["plain"]).get_content()
    assert about.effect in storm.events.get(kind=CaseEvent.Kind.FOLLOWED_UP).text
    assert follow_up(at("12:31")) == 0


def test_a_job_that_ran_when_its_mail_was_sent_counts_as_before(mailed):
    first = mailed(CALM)
    Notification.objects.update(finished_at=at("12:05"))  # the storm's job ended at 12:09

    follow_up(at("12:30"))

    effect = NotificationCase.objects.get(notification=first).effect
    assert "median of 1 before, 3 since then" in effect


def test_unchanged_jobs_are_a_reason_for_a_reminder_and_then_for_staff(mailed, mails, storm):
    first = mailed(STORMS)
    now = AFTER_THE_STORM + WEEK

    assert follow_up(now - timedelta(minutes=1)) == 0
    assert follow_up(now) == 1
    outbox.send_due(10)
    assert "They have not" in mails.accepted[-1][1].get_body(["plain"]).get_content()
    assert follow_up(now + timedelta(minutes=1)) == 0
    assert follow_up(now + WEEK) == 1
    first.refresh_from_db()
    assert first.step == "escalation"
    assert "contact the user" in storm.events.filter(kind="followed up").last().text
    assert len(mails.accepted) == 2


def test_a_disputed_mail_has_no_follow_up(mailed):
    first = mailed(CALM)
    Answer.objects.create(notification=first, kind=Answer.Kind.WRONG)

    assert follow_up(at("12:30")) == 0


def test_follow_ups_need_the_approval_that_mails_need(mailed):
    mailed(CALM)
    MailPolicy.objects.update(default_mode="approval")

    follow_up(at("12:30"))

    thanks = Notification.objects.get(kind=Notification.Kind.FOLLOW_UP)
    assert thanks.state == Notification.State.DRAFT


def _silence():
    Silence.objects.create(recipient="alice", until=AFTER_THE_STORM + 30 * WEEK, reason="On leave.")


@pytest.mark.parametrize(
    ("change", "verdict", "reason"),
    [
        (_silence, "withheld", "On leave."),
        (lambda: UserAccount.objects.update(email=""), "withheld", "no mail address"),
        (
            lambda: BouncedAddress.objects.create(address="alice@example.org", reason="5.1.1"),
            "withheld",
            "bounced",
        ),
        (lambda: MailPolicy.objects.update(excluded=["alice"]), "withheld", "excluded"),
        (lambda: MailPolicy.objects.update(default_mode="off"), "withheld", "off"),
        (lambda: Case.objects.update(state="acknowledged"), "withheld", "acknowledged"),
        (
            lambda: Case.objects.update(
                state="resolved", resolution="x", resolved_by="sam", resolved_at=AFTER_THE_STORM
            ),
            "withheld",
            "resolved",
        ),
        (lambda: MailPolicy.objects.update(quiet_until=23), "later", "Quiet hours"),
        (lambda: MailPolicy.objects.update(holidays=["2017-07-05"]), "later", "holiday"),
        (lambda: MailPolicy.objects.update(daily_cap=0), "later", "limit of 0"),
        (lambda: MailPolicy.objects.update(hourly_brake=0), "later", "limit of 0"),
    ],
)
def test_what_holds_mails_holds_follow_ups(mailed, storm, change, verdict, reason):
    mail = mailed(CALM)
    change()

    assert follow_up(at("12:30")) == follow_up(at("12:31")) == 0

    mail.refresh_from_db()
    assert mail.step == ""
    assert not Notification.objects.filter(kind=Notification.Kind.FOLLOW_UP).exists()
    [decision] = CaseDecision.objects.filter(case=storm, reason__startswith="Follow-up: ")
    assert decision.verdict == verdict
    assert reason in decision.reason
    planning.plan()
    assert CaseDecision.objects.filter(case=storm, reason__startswith="Follow-up: ").count() == 1


def test_a_problem_that_is_over_is_a_reason_to_say_thank_you(mailed, mails):
    mailed(CALM)
    Case.objects.update(state="resolved", resolution="Expired.", resolved_at=timezone.now())

    assert follow_up(at("12:30")) == 1
    outbox.send_due(10)
    assert len(mails.accepted) == 2
