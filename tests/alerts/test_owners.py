"""Mails about cases whose owner or name becomes known later."""

from datetime import timedelta

import polars as pl
import pytest
from django.db.models import F
from django.utils import timezone

from ioportal.alerts import follow_ups, planning
from ioportal.alerts.delivery import outbox
from ioportal.alerts.models import CaseDecision, Notification, NotificationCase
from ioportal.findings.cases import reassignment
from ioportal.findings.models import Case, Flag
from ioportal.jobs.models import Job
from ioportal.site.models import UserAccount
from tests import untraced
from tests.logs import at
from tests.repeats import WEEK_AFTER, WEEK_BEFORE, repeat_jobs

DAY = timedelta(days=1)


@pytest.fixture
def mailed(storm, automatic, mails):
    """Send the mail about the storm to alice."""
    UserAccount.objects.create(name="bob", email="bob@example.org")
    planning.plan()
    outbox.send_due(10)
    return Notification.objects.get()


def move(storm, owner, application):
    flag = Flag.objects.get(case=storm)
    Job.objects.filter(pk=flag.job_id).update(owner=owner)
    columns = {"subject": [flag.subject], "owner": [owner], "application": [application]}
    reassignment.reassign(pl.DataFrame(columns))


def test_the_right_owner_gets_a_mail_after_the_wrong_one(storm, mailed, mails):
    move(storm, "bob", "storm")
    planning.plan(timezone.now() + DAY)
    Notification.objects.filter(state="waiting").update(next_attempt_at=timezone.now())
    outbox.send_due(10)

    assert [to for to, _ in mails.accepted] == [["alice@example.org"], ["bob@example.org"]]


def test_the_wrong_owner_gets_no_follow_up(storm, mailed):
    Notification.objects.update(finished_at=at("12:09:30"))
    repeat_jobs([untraced.STORM], [*WEEK_BEFORE, *WEEK_AFTER], daily=2)
    move(storm, "bob", "storm")

    assert follow_ups.follow_up(at("12:10") + 8 * DAY) == 0
    assert not Notification.objects.filter(kind="follow-up").exists()


def test_mails_and_decisions_stay_with_a_case_that_joins_another_one(storm, mailed):
    flag = Flag.objects.get(case=storm)
    other = Case.objects.get(pk=storm.pk)
    other.pk, other.application = None, "other"
    other.save()
    flag.pk, flag.job, flag.subject, flag.case = None, None, "424242", other  # continues
    flag.save()
    Flag.objects.update(opened_at=F("until"))
    decisions = CaseDecision.objects.filter(case=storm).count()

    move(storm, "alice", "other")

    assert not Case.objects.filter(pk=storm.pk).exists()
    assert NotificationCase.objects.get().case == other
    assert CaseDecision.objects.filter(case=other).count() == decisions > 0
    assert planning.plan(timezone.now() + DAY) == 0
