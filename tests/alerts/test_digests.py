"""Schedules and contents of digests for staff and for contacts of projects."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import count
from threading import Barrier
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.core.exceptions import ValidationError
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ioportal.alerts import planning
from ioportal.alerts.delivery import outbox
from ioportal.alerts.digests import admins, projects, schedule
from ioportal.alerts.models import CaseDecision, MailPolicy, Notification, NotificationCase
from ioportal.findings.models import Case, Flag
from ioportal.jobs.models import Job, JobStatistics
from ioportal.site.models import Cluster, Project, UserAccount
from ioportal.telemetry.models import StageFailure
from tests import untraced
from tests.web.rows import flag_job

State = Notification.State
MONDAY = datetime(2017, 7, 10, 7, 30, tzinfo=UTC)
DAY = timedelta(days=1)
NOON = datetime(2017, 7, 5, 12, tzinfo=UTC)  # in the week before


def set_policy(**facts):
    return MailPolicy.objects.create(
        **{
            "wait": "0",
            "interval": "0",
            "repeat": "0",
            "daily_cap": 9,
            "hourly_brake": 9,
            "reason": "test",
            "digest_readers": ["sam"],
            "project_digest_day": MailPolicy.Day.MONDAY,
            **facts,
        }
    )


@pytest.fixture
def policy(db):
    """Daily digests for sam, weekly ones on Mondays, both at 7."""
    return set_policy()


@pytest.fixture
def sam(db):
    return User.objects.create(username="sam", email="sam@example.org", is_staff=True)


@pytest.fixture
def lead(db):
    """alice leads PHY12."""
    account = UserAccount.objects.create(
        name="alice", full_name="Alice Ames", email="alice@example.org"
    )
    return Project.objects.create(name="PHY12", account=account)


@pytest.fixture
def new_job(db):
    """Create a job that ran for two hours on four nodes, with its statistics."""
    cluster = Cluster.objects.create(name="anvil", time_zone="UTC", batch_system="slurm")
    ids = count(100)

    def make(ended_at=NOON, operations=None, **facts):
        job = Job.objects.create(
            **{
                "cluster": cluster,
                "batch_id": str(next(ids)),
                "submitted_at": ended_at - timedelta(hours=3),
                "started_at": ended_at - timedelta(hours=2),
                "ended_at": ended_at,
                "name": "relax",
                "owner": "alice",
                "project": "PHY12",
                "state": Job.State.COMPLETED,
                "node_count": 4,
                "precedence": "",
                "quality": "good",
                **facts,
            }
        )
        JobStatistics.objects.create(
            job=job,
            computed_at=ended_at,
            quality="good",
            metadata_operations=operations,
            read_bytes=2 * 10**9,
        )
        return job

    return make


def digest_of(kind="digest"):
    return Notification.objects.get(key__startswith=f"{kind}:")


def lines_of(text):
    return [line.strip() for line in text.splitlines()]


def test_a_daily_digest_ranks_the_cases_and_arrives(storm, sam, policy, mails):
    other = flag_job(
        Job.objects.get(batch_id=untraced.BYSTANDER),
        severity=Flag.Severity.NOTICE,
        until=storm.until,
    )
    now = storm.until + timedelta(hours=1)
    planning.plan()
    Notification.objects.update(state=State.SENT, finished_at=now - 4 * DAY)
    NotificationCase.objects.update(effect="2.1 M to 0.5 M operations a job")
    CaseDecision.objects.create(case=storm, verdict="later", reason="Waits for further cases.")
    set_policy(digest_hour=now.hour)

    assert schedule.write_due(now) == 1
    Notification.objects.update(next_attempt_at=now)
    outbox.send_due(10)

    [(recipients, digest)] = mails.accepted
    assert recipients == ["sam@example.org"]
    assert digest["Subject"] == "Daily digest: cases: 1"
    for kind in ("plain", "html"):
        body = " ".join(digest.get_body([kind]).get_content().split())
        assert "Slows down other jobs: user alice, jobs named storm on lake (abuse)" in body
        assert "Owner: Alice Ng, alice@example.org" in body
        assert "Mails: 1, the last 4 days ago. Since then: 2.1 M to 0.5 M operations a job" in body
        assert "Latest decision: Waits for further cases" in body
        assert f"/cases/{storm.pk}/" in body
        assert f"/cases/{other.case_id}/" not in body  # a notice


def test_readers_learn_once_a_day_that_the_hourly_brake_holds_mails(storm, sam):
    set_policy(hourly_brake=1)
    Notification.objects.create(recipient="bob", subject="Earlier", state=State.SENT)

    planning.plan()
    planning.plan()

    notice = digest_of("brake")
    assert (notice.address, notice.state) == ("sam@example.org", State.WAITING)
    assert notice.subject == "Mails about cases are held: 1 within an hour"
    assert "Slows down other jobs: user alice, jobs named storm on lake" in notice.text
    assert "Owner: Alice Ng, alice@example.org" in notice.text
    assert not Notification.objects.filter(recipient="alice").exists()
    assert CaseDecision.objects.get(case=storm).reason == (
        "All recipients have reached the limit of 1 within an hour."
    )


def test_a_daily_digest_names_drafts_lost_mails_and_data_problems(sam, policy):
    common = {"recipient": "alice", "address": "alice@example.org", "text": "t"}
    Notification.objects.create(subject="Waits", state=State.DRAFT, **common)
    for state in (State.FAILED, State.UNCERTAIN, State.SENT):
        Notification.objects.create(
            subject=f"It is {state}", state=state, response="\x1b550 no",
            finished_at=MONDAY - timedelta(hours=1), **common,
        )  # fmt: skip
    StageFailure.objects.create(stage="evaluation", failed_at=MONDAY, error="OSError: disk")

    schedule.write_due(MONDAY)

    text = digest_of().text
    assert digest_of().subject == (
        "Daily digest: drafts: 1, failed and uncertain mails: 2, data problems: 1"
    )
    assert "No cases need attention." in text
    for line in (
        "* Waits",
        "To alice: draft",
        "* It is failed",
        "To alice: uncertain",
        "\\x1b550 no",
        "* Stage evaluation fails: OSError: disk",
    ):
        assert line in lines_of(text)
    assert "It is sent" not in text


@pytest.mark.parametrize(
    ("hour", "readers", "facts", "written"),
    [
        (6, ["sam"], {}, 0),
        (7, ["sam"], {}, 1),
        (23, ["sam"], {}, 1),
        (8, [], {}, 0),
        (8, ["sam"], {"is_staff": False}, 0),
        (8, ["sam"], {"is_active": False}, 0),
        (8, ["sam"], {"email": ""}, 0),
    ],
)
def test_daily_digests_are_for_listed_staff_with_an_address(sam, hour, readers, facts, written):
    set_policy(digest_readers=readers)
    User.objects.update(**facts)

    assert schedule.write_due(MONDAY.replace(hour=hour)) == written


def test_a_policy_names_readers_who_get_digests(sam, policy):
    User.objects.create(username="alice", email="alice@example.org")
    policy.full_clean()

    policy.digest_readers = ["sam", "alice", "nobody"]

    with pytest.raises(ValidationError, match="No staff with a mail address: alice, nobody"):
        policy.full_clean()


def test_without_a_policy_there_are_no_digests(sam):
    assert schedule.write_due(MONDAY) == 0


def test_hours_are_those_of_the_portal(sam, policy, settings):
    settings.TIME_ZONE = "America/New_York"

    assert schedule.write_due(MONDAY) == 0  # 3:30
    assert schedule.write_due(MONDAY.replace(hour=11)) == 1  # 7:00


def test_a_past_day_is_not_made_up_for(sam, policy):
    written = [schedule.write_due(MONDAY + hours * timedelta(hours=1)) for hours in range(72)]

    assert sum(written) == 3
    assert {row.key for row in Notification.objects.all()} == {
        "digest:2017-07-10:sam",
        "digest:2017-07-11:sam",
        "digest:2017-07-12:sam",
    }


@given(st.lists(st.timedeltas(timedelta(0), 9 * DAY), max_size=12))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_schedule_writes_a_digest_once_a_day(sam, policy, moments):
    Notification.objects.all().delete()
    times = sorted(MONDAY.replace(hour=0, minute=0) + moment for moment in moments)

    for now in times:
        schedule.write_due(now)

    due = {f"digest:{now:%Y-%m-%d}:sam" for now in times if now.hour >= 7}
    assert sorted(Notification.objects.values_list("key", flat=True)) == sorted(due)


@pytest.mark.django_db(transaction=True)
def test_workers_that_race_write_each_digest_once(sam, policy, lead, new_job):
    new_job(operations=5)
    workers = 4
    barrier = Barrier(workers)

    def race(_):
        barrier.wait(10)
        schedule.write_due(MONDAY)
        connection.close()

    with ThreadPoolExecutor(workers) as threads:
        list(threads.map(race, range(workers)))

    keys = sorted(Notification.objects.values_list("key", flat=True))
    assert keys == ["digest:2017-07-10:sam", f"weekly-digest:2017-07-10:{lead.pk}"]


def test_a_weekly_digest_compares_a_project_with_the_week_before(policy, lead, new_job):
    heavy = new_job(operations=3_000_000, name="storm")
    new_job(operations=1_000_000, owner="bob")
    new_job(NOON - 7 * DAY, operations=2_000_000)
    new_job(MONDAY, operations=7)  # of today
    new_job(operations=8_000_000, project="CHM3")
    new_job(operations=9_000_000, owner="")
    flag = flag_job(heavy, until=NOON)
    earlier = NOON - 7 * DAY
    flag_job(new_job(earlier, name="old"), since=earlier, until=earlier)

    assert schedule.write_due(MONDAY) == 1

    mail = digest_of("weekly-digest")
    assert mail.subject == "Weekly digest of project PHY12: 2017-07-03 to 2017-07-09"
    assert (mail.recipient, mail.address) == ("alice", "alice@example.org")
    lines = lines_of(mail.text)
    for line in (
        "Hello Alice Ames,",
        "Jobs: 2 (the week before: 2, +0%)",
        "Metadata operations: 4,000,000 (the week before: 2,000,000, +100%)",
        "Node-hours: 16.0 (the week before: 16.0, +0%)",
        f"* Job {heavy.batch_id} of alice: 3,000,000 operations",
        "CASES (THE WEEK BEFORE: 1)",
        f"* {flag.title}: jobs named storm of alice (warning)",
        f"Jobs: 1, the worst: job {heavy.batch_id}",
    ):
        assert line in lines
    assert "CHM3" not in mail.text
    assert "8,000,000" not in mail.text
    assert "9,000,000" not in mail.text


def test_a_contact_sees_what_members_of_the_project_see(policy, lead, new_job):
    poor = new_job(name="poor", operations=1)
    flag_job(poor, until=NOON, suppression_reasons=["gap"])
    flag_job(new_job(name="theirs", project="CHM3"), until=NOON)
    flag_job(
        new_job(), subject_kind="user", subject="alice", until=NOON, rule="metadata-operations"
    )

    schedule.write_due(MONDAY)

    assert "No problems were found." in digest_of("weekly-digest").text


def test_weekly_digests_need_an_address_activity_and_the_day(policy, lead, new_job):
    assert schedule.write_due(MONDAY) == 0
    new_job()
    assert schedule.write_due(MONDAY + DAY) == 0
    UserAccount.objects.update(email="")
    assert schedule.write_due(MONDAY) == 0
    UserAccount.objects.update(email="alice@example.org")
    set_policy(excluded=["alice"])
    assert schedule.write_due(MONDAY) == 0
    set_policy(project_digest_day=None)
    assert schedule.write_due(MONDAY) == 0
    set_policy()
    assert schedule.write_due(MONDAY) == 1


def test_contacts_without_an_account_have_no_mails_in_the_portal(policy, new_job):
    Project.objects.create(name="PHY12", contact="Dora Dean", email="dean@example.org")
    new_job()
    schedule.write_due(MONDAY)
    Notification.objects.update(state=State.SENT)

    assert digest_of("weekly-digest").recipient == ""
    assert not Notification.objects.visible_to(AnonymousUser()).exists()
    assert not Notification.objects.visible_to(User(username="bob")).exists()


def test_the_number_of_queries_is_that_of_one_project(new_job, django_assert_num_queries):
    names = ["P1", "P2", "P3", "P4"]
    for name in names:
        for _ in range(3):
            flag_job(new_job(operations=5, project=name, name=name), until=NOON)

    with django_assert_num_queries(5):
        digests = projects.digests(names, MONDAY.date(), ZoneInfo("UTC"))

    assert [digest.sections[1].count for digest in digests.values()] == [3] * 4


def test_the_number_of_queries_of_a_daily_digest_is_that_of_one_case(
    new_job, django_assert_max_num_queries
):
    def add(*names):
        for name in names:
            flag_job(new_job(operations=5, owner=name, name=name), until=NOON)

    add("u1")
    with django_assert_max_num_queries(1_000) as few:
        admins.digest(NOON)
    add("u2", "u3", "u4")

    with django_assert_max_num_queries(len(few)):
        assert admins.digest(NOON).sections[0].count == 4


def test_hostile_names_stay_on_their_line(policy, lead, new_job):
    name = "x\nSubject: y\u202e<b>"
    job = new_job(operations=5, name=name, owner="a\rb")
    flag_job(job, until=NOON)
    Case.objects.update(application=name)

    schedule.write_due(MONDAY)

    mail = digest_of("weekly-digest")
    assert "\nSubject: y" not in mail.text
    assert "\u202e" not in mail.text
    assert "<b>" not in mail.html
    assert len(mail.html) < 100_000
