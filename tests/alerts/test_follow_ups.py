"""After a mail: its effect on the recipient's jobs, and follow-ups."""

from datetime import timedelta

import pytest
from django.db.models import F
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
from ioportal.changes.models import Mitigation
from ioportal.findings.models import Case, CaseEvent
from ioportal.jobs.models import JobStatistics
from ioportal.site.models import UserAccount
from tests import loading, untraced
from tests.logs import at
from tests.repeats import WEEK_AFTER, WEEK_BEFORE, repeat_jobs

WEEK = timedelta(days=7)
CALM, STORMS = 3 * untraced.CALM_REQUESTS, 3 * untraced.STORM_REQUESTS  # a minute, of three jobs
AFTER_THE_STORM = at("12:09:30")
EFFECT = (
    "peak metadata rate fell 100.0\N{MULTIPLICATION SIGN} (± <0.1 %), "
    "median 1,000 operations/s → 10.0 operations/s; "
    "metadata operations fell 51.3\N{MULTIPLICATION SIGN} (± <0.1 %), "
    "median 184,800 operations → 3,600 operations "
    "(12 jobs on 7 days before 5 July, 18 jobs on 6 days since 5 July)"
)
THANKED = AFTER_THE_STORM + timedelta(days=6)


@pytest.fixture
def mailed(storm, automatic, mails, logs):
    """Send a mail as if just after the storm; then load later jobs with requests a minute.

    With `weeks`, the storm's and later jobs also ran on the days of the week before and after.
    """

    def before(requests, *, weeks=True):
        planning.plan()
        outbox.send_due(10)
        Notification.objects.update(finished_at=AFTER_THE_STORM)
        untraced.ingest_later(logs, requests)
        loading.evaluate()
        if weeks:
            repeat_jobs([untraced.STORM], WEEK_BEFORE, daily=2)
            repeat_jobs(untraced.LATER, WEEK_AFTER)
        return Notification.objects.get()

    return before


def test_calmer_jobs_are_a_reason_to_say_thank_you(mailed, mails, storm):
    first = mailed(CALM)

    assert follow_up(THANKED) == 1
    outbox.send_due(10)

    about = NotificationCase.objects.get(notification=first)
    assert about.outcome == "improved"
    assert about.effect == EFFECT
    _, (recipients, thanks) = mails.accepted
    assert recipients == ["alice@example.org"]
    assert thanks["In-Reply-To"] == f"<{first.token}@localhost>"
    assert thanks["Subject"] == f"Re: {first.subject}"
    assert "Thank you: your jobs have improved" in thanks.get_body(["plain"]).get_content()
    assert about.effect in storm.events.get(kind=CaseEvent.Kind.FOLLOWED_UP).text
    assert follow_up(THANKED + timedelta(minutes=1)) == 0


def test_few_days_are_no_reason_to_say_anything(mailed):
    first = mailed(CALM, weeks=False)

    assert follow_up(THANKED) == 0

    about = NotificationCase.objects.get(notification=first)
    assert about.outcome == "unknown"
    assert about.effect == (
        "unclear for the change of 5 July: there is less than a day of data before it"
    )


def test_findings_after_the_mail_are_a_reason_for_a_reminder(mailed, mails):
    first = mailed(STORMS, weeks=False)

    assert follow_up(AFTER_THE_STORM + WEEK) == 1
    outbox.send_due(10)

    about = NotificationCase.objects.get(notification=first)
    assert about.outcome == "recurred"
    assert about.effect.startswith("found again 3 times since then; unclear for ")
    text = mails.accepted[-1][1].get_body(["plain"]).get_content()
    assert "The same was found again since then." in " ".join(text.split())


def test_a_job_that_ran_when_its_mail_was_sent_counts_as_before(mailed):
    first = mailed(CALM)
    Notification.objects.update(finished_at=at("12:05"))  # the storm's job ended at 12:09

    follow_up(THANKED)

    effect = NotificationCase.objects.get(notification=first).effect
    assert "12 jobs on 7 days before" in effect


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


def _answered(storm):
    event = CaseEvent.objects.create(case=storm, kind="answered", by="alice", text="It is fixed.")
    CaseEvent.objects.filter(pk=event.pk).update(at=AFTER_THE_STORM + WEEK)


def _logged(_):
    Mitigation.objects.create(
        title="Software moves to NFS", kind="software", scope="user=alice&name=storm",
        started_at=AFTER_THE_STORM + WEEK, is_public=True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "named"),
    [
        pytest.param(_answered, 'your answer "It is fixed"', id="an answer"),
        pytest.param(_logged, "Software moves to NFS", id="a mitigation"),
    ],
)
def test_jobs_are_compared_before_and_after_the_change_itself(mailed, storm, change, named):
    mailed(STORMS)
    repeat_jobs(untraced.LATER, range(8, 15))
    later = JobStatistics.objects.filter(job__started_at__gt=AFTER_THE_STORM + WEEK)
    measures = ("peak_metadata_rate", "metadata_operations")
    later.update(**{name: F(name) / 4 for name in measures})
    change(storm)

    assert follow_up(AFTER_THE_STORM + 2 * WEEK) == 1

    thanks = Notification.objects.get(kind=Notification.Kind.FOLLOW_UP).text
    assert "Thank you: your jobs have improved" in thanks
    words = " ".join(thanks.split())
    assert "metadata operations fell 4.00\N{MULTIPLICATION SIGN} " in words
    assert "21 jobs on 7 days before 12 July, 21 jobs on 7 days since 12 July" in words
    assert f"Changes in between: {named}." in words


def test_a_disputed_mail_has_no_follow_up(mailed):
    first = mailed(CALM)
    Answer.objects.create(notification=first, kind=Answer.Kind.WRONG)

    assert follow_up(THANKED) == 0


def test_follow_ups_need_the_approval_that_mails_need(mailed):
    mailed(CALM)
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
    mail = mailed(CALM)
    change()

    assert follow_up(THANKED) == follow_up(THANKED) == 0

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

    assert follow_up(THANKED) == 1
    outbox.send_due(10)
    assert len(mails.accepted) == 2
