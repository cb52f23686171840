"""After a mail: its effect on the recipient's jobs, and reminders."""

from datetime import timedelta
from functools import partial

import pytest
from django.db.models import F

from ioportal.alerts.delivery import outbox
from ioportal.alerts.follow_ups import follow_up
from ioportal.alerts.models import Notification, NotificationCase
from ioportal.changes.models import Mitigation
from ioportal.findings.models import CaseEvent
from ioportal.jobs.models import JobStatistics
from tests import untraced
from tests.alerts import followed
from tests.alerts.followed import AFTER_THE_STORM, CALM, STORMS, THANKED, WEEK
from tests.repeats import repeat_jobs


@pytest.fixture
def mailed(storm, automatic, mails, logs):
    """Send a mail; then load later jobs: see `followed.mail`."""
    return partial(followed.mail, logs)


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
