"""After a mail, calmer jobs: who is thanked, and what holds a follow-up."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.test import override_settings
from django.utils import timezone

from ioportal.alerts import planning
from ioportal.alerts.delivery import outbox
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
from ioportal.findings.models import Case, CaseEvent
from ioportal.site.models import UserAccount
from tests.alerts import followed, mail_server
from tests.alerts.conftest import send_without_approval
from tests.alerts.followed import AFTER_THE_STORM, CALM, THANKED, WEEK
from tests.logs import at

EFFECT = (
    "peak metadata rate fell 100.0\N{MULTIPLICATION SIGN} (± <0.1 %), "
    "median 1,000 operations/s → 10.0 operations/s; "
    "metadata operations fell 51.3\N{MULTIPLICATION SIGN} (± <0.1 %), "
    "median 184,800 operations → 3,600 operations "
    "(12 jobs on 7 days before 5 July, 18 jobs on 6 days since 5 July)"
)


@pytest.fixture(scope="module")
def mailed_case(storm_case, module_logs):
    """Send a mail about the storm, and load calmer jobs."""
    send_without_approval()
    with override_settings(), mail_server.running(settings):
        followed.mail(module_logs, CALM)
    return storm_case


@pytest.fixture
def mailed(mailed_case):
    return Notification.objects.get()


@pytest.fixture
def storm(mailed_case):
    return Case.objects.get(pk=mailed_case)


def test_calmer_jobs_are_a_reason_to_say_thank_you(mailed, mails, storm):
    assert follow_up(THANKED) == 1
    outbox.send_due(10)

    about = NotificationCase.objects.get(notification=mailed)
    assert about.outcome == "improved"
    assert about.effect == EFFECT
    [(recipients, thanks)] = mails.accepted
    assert recipients == ["alice@example.org"]
    assert thanks["In-Reply-To"] == f"<{mailed.token}@localhost>"
    assert thanks["Subject"] == f"Re: {mailed.subject}"
    assert "Thank you: your jobs have improved" in thanks.get_body(["plain"]).get_content()
    assert about.effect in storm.events.get(kind=CaseEvent.Kind.FOLLOWED_UP).text
    assert follow_up(THANKED + timedelta(minutes=1)) == 0


def test_a_job_that_ran_when_its_mail_was_sent_counts_as_before(mailed):
    Notification.objects.update(finished_at=at("12:05"))  # the storm's job ended at 12:09

    follow_up(THANKED)

    effect = NotificationCase.objects.get(notification=mailed).effect
    assert "12 jobs on 7 days before" in effect


def test_a_disputed_mail_has_no_follow_up(mailed):
    Answer.objects.create(notification=mailed, kind=Answer.Kind.WRONG)

    assert follow_up(THANKED) == 0


def test_follow_ups_need_the_approval_that_mails_need(mailed):
    MailPolicy.objects.update(default_mode="approval")

    follow_up(THANKED)

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
        (lambda: MailPolicy.objects.update(holidays=["2017-07-11"]), "later", "holiday"),
        (lambda: MailPolicy.objects.update(daily_cap=0), "later", "limit of 0"),
        (lambda: MailPolicy.objects.update(hourly_brake=0), "later", "limit of 0"),
    ],
)
def test_what_holds_mails_holds_follow_ups(mailed, storm, change, verdict, reason):
    change()

    assert follow_up(THANKED) == follow_up(THANKED) == 0

    mailed.refresh_from_db()
    assert mailed.step == ""
    assert not Notification.objects.filter(kind=Notification.Kind.FOLLOW_UP).exists()
    [decision] = CaseDecision.objects.filter(case=storm, reason__startswith="Follow-up: ")
    assert decision.verdict == verdict
    assert reason in decision.reason
    planning.plan()
    assert CaseDecision.objects.filter(case=storm, reason__startswith="Follow-up: ").count() == 1


def test_a_problem_that_is_over_is_a_reason_to_say_thank_you(mailed, mails):
    Case.objects.update(state="resolved", resolution="Expired.", resolved_at=timezone.now())

    assert follow_up(THANKED) == 1
    outbox.send_due(10)
    assert len(mails.accepted) == 1
