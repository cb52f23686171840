"""Mails that users ask for: reports of their jobs, and weekly summaries."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from ioportal.alerts import own_mails, planning
from ioportal.alerts.delivery import outbox
from ioportal.alerts.models import Notification, Subscription
from ioportal.jobs.models import DirtyStatistics, Job
from ioportal.site.models import UserAccount

HOUR = timedelta(hours=1)
MONDAY = datetime(2017, 7, 10, 8, 0, tzinfo=ZoneInfo("America/New_York"))


@pytest.fixture
def now():
    return timezone.now()


@pytest.fixture
def subscribe(db):
    """Store what a user wants; long ago."""

    def store(name="alice", email="alice@example.org", **wishes):
        user = User.objects.create(username=name)
        UserAccount.objects.create(name=name, email=email)
        wanted = Subscription.objects.create(user=user, **wishes)
        Subscription.objects.update(changed_at=MONDAY - timedelta(days=400))
        return wanted

    return store


@pytest.fixture
def ended(new_job, now):
    """Create a job of two nodes that ran for an hour and ended some time ago."""

    def make(ago=HOUR, figures=None, **facts):
        end = facts.pop("ended_at", now - ago)
        figures = {"metadata_operations": 90_000, **(figures or {})}
        return new_job(figures, started_at=end - HOUR, ended_at=end, **facts)

    return make


def reported():
    """Return the jobs that reports were written about."""
    keys = Notification.objects.order_by("pk").values_list("key", flat=True)
    return [int(key.removeprefix("report:")) for key in keys]


def test_a_report_follows_the_end_of_a_job_once(subscribe, ended, mails):
    subscribe(job_reports=True, min_node_hours=2)
    job = ended(name="relax")

    own_mails.write()
    own_mails.write()
    outbox.send_due(10)

    [(recipients, mail)] = mails.accepted
    assert recipients == ["alice@example.org"]
    assert mail["Subject"] == f"Report: Job {job.display_id} on anvil: relax"
    text = mail.get_content()
    assert "45,000 operations per node-hour" in text
    assert f"/jobs/{job.pk}/" in text
    assert "/me/" in text
    assert max(len(line) for line in text.splitlines() if "http" not in line) <= 78


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param({"owner": "bob"}, id="of another user"),
        pytest.param({"node_count": 1}, id="too small"),
        pytest.param({"ago": 25 * HOUR}, id="loaded history"),
        pytest.param({"ago": timedelta(minutes=5)}, id="counters may follow"),
    ],
)
def test_no_report_is_written_about_other_jobs(subscribe, ended, facts):
    subscribe(job_reports=True, min_node_hours=2)
    ended(**facts)

    own_mails.write()

    assert reported() == []


def test_a_report_waits_for_statistics(subscribe, ended):
    subscribe(job_reports=True, min_node_hours=0)
    job = ended()
    pending = DirtyStatistics.objects.create(job_id=job.pk)
    own_mails.write()
    assert reported() == []

    pending.delete()
    own_mails.write()

    assert reported() == [job.pk]


def test_jobs_that_ended_before_the_wish_get_no_report(subscribe, ended):
    subscribe(job_reports=True, min_node_hours=0).save()
    ended()

    own_mails.write()

    assert reported() == []


@pytest.mark.parametrize(
    "change",
    [
        lambda: User.objects.update(is_active=False),
        lambda: UserAccount.objects.update(email=""),
        lambda: Subscription.objects.update(job_reports=False),
    ],
)
def test_reports_need_a_wish_an_address_and_an_active_user(subscribe, ended, change):
    subscribe(job_reports=True, min_node_hours=0)
    ended()
    change()

    own_mails.write()

    assert reported() == []


def test_reports_of_a_day_are_limited_by_user(subscribe, ended, django_assert_max_num_queries):
    subscribe(job_reports=True, min_node_hours=0, daily_cap=2)
    subscribe("bob", "bob@example.org", job_reports=True, min_node_hours=0)
    jobs = [ended(ago=ago * HOUR) for ago in (5, 4, 3)]
    other = ended(owner="bob")

    own_mails.write()
    with django_assert_max_num_queries(4):
        own_mails.write()

    assert reported() == [jobs[0].pk, jobs[1].pk, other.pk]


def test_requested_mails_do_not_count_for_the_limits_of_others(storm, automatic):
    for number in range(3):
        Notification.objects.create(
            kind=Notification.Kind.REPORT, key=f"report:{number}", recipient="alice",
            address="alice@example.org", subject="s", text="t", state=Notification.State.SENT,
        )  # fmt: skip

    assert planning.plan() == 1


def test_a_summary_compares_the_week_with_the_week_before(subscribe, ended, mails, settings):
    settings.TIME_ZONE = "America/New_York"
    subscribe(weekly_summary=True)
    for days, operations in ((1, 4_000), (6, 2_000), (9, 1_000)):
        figures = {"metadata_operations": operations, "read_bytes": 5_000_000}
        ended(ended_at=MONDAY - timedelta(days=days), figures=figures)
    ended(ended_at=MONDAY - timedelta(days=1), owner="bob")
    ended(ended_at=MONDAY - HOUR)  # on Monday

    with timezone.override(MONDAY.tzinfo):
        own_mails.write(MONDAY - 2 * HOUR)
        assert not Notification.objects.exists()
        own_mails.write(MONDAY)
        own_mails.write(MONDAY + HOUR)
        own_mails.write(MONDAY + timedelta(days=1))

    Notification.objects.update(next_attempt_at=timezone.now())
    outbox.send_due(10)
    [(_, mail)] = mails.accepted
    assert mail["Subject"] == "Your jobs from 2017-07-03 to 2017-07-09"
    lines = [" ".join(line.split()) for line in mail.get_content().splitlines()]
    assert "Jobs 2 1" in lines
    assert "Metadata operations 6,000 1,000" in lines
    assert "Read 10.0 MB 5.00 MB" in lines
    assert max(len(line) for line in mail.get_content().splitlines()) <= 78


def test_a_week_without_jobs_has_no_summary(subscribe, ended):
    subscribe(weekly_summary=True)
    ended(ended_at=MONDAY - timedelta(days=20))

    own_mails.write(MONDAY)

    assert not Notification.objects.exists()
    assert Job.objects.exists()
