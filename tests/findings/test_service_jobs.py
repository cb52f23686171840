"""The PanDA jobs behind cases of a service account."""

import pytest
from django.contrib.auth.models import User

from ioportal.alerts import case_mail_texts, compose
from ioportal.findings.cases import service_jobs
from ioportal.jobs.models import Job
from ioportal.site.models import Cluster, UserAccount
from tests.logs import at
from tests.web.rows import flag_job, put_inside


@pytest.fixture
def pilots(db):
    """Two flagged batch jobs of a service account and one without a flag."""
    UserAccount.objects.create(name="pilot", email="ops@example.org", team="PanDA operations")
    cluster = Cluster.objects.create(name="anvil", time_zone="UTC", batch_system="slurm")
    return [
        Job.objects.create(
            cluster=cluster, batch_id=number, submitted_at=at("11:00"), started_at=at("12:00"),
            ended_at=at("13:00"), name="pilot", owner="pilot", project="HEP1", node_count=2,
            state=Job.State.COMPLETED, precedence="",
        )
        for number in ("1", "2", "3")
    ]  # fmt: skip


@pytest.fixture
def case(pilots):
    """The case of the flagged jobs."""
    flags = [flag_job(job) for job in pilots[:2]]
    return flags[0].case


READER = User(pk=0, username="pilot")


def test_tasks_users_and_sites_are_named_by_their_panda_jobs(pilots, case):
    put_inside(pilots[0], 1, 2, 3)
    put_inside(pilots[1], 4, task_id=7, user="atlas-prod", site="")
    put_inside(pilots[2], 5, task_id=8)  # in a job without a flag

    assert service_jobs.lines(case, READER) == [
        "PanDA jobs in these jobs: 4",
        "PanDA tasks: 10995522 (3), 7 (1)",
        "Users or production groups: Pilot One (3), atlas-prod (1)",
        "Computing sites: ORNL_Titan_MCORE (3), unknown (1)",
    ]


def test_ten_of_many_tasks_are_listed(pilots, case):
    for number in range(13):
        put_inside(pilots[0], number, task_id=100 + number, user=f"u\x1b{number}")

    _, tasks, users, _ = service_jobs.lines(case, READER)

    assert tasks == (
        "PanDA tasks: " + "".join(f"{100 + number} (1), " for number in range(10)) + "3 more"
    )
    assert "u\\x1b0 (1)" in users


def test_a_panda_job_in_several_batch_jobs_counts_once(pilots, case):
    put_inside(pilots[0], 1)
    pilots[1].workload_jobs.add(*pilots[0].workload_jobs.all())

    assert service_jobs.lines(case, READER)[0] == "PanDA jobs in these jobs: 1"


def test_groups_of_jobs_are_those_of_the_owner_at_the_time(pilots):
    flag = flag_job(pilots[0], subject_kind="user", subject="pilot", rule="impact-of-many-jobs")
    put_inside(pilots[2], 1)

    assert service_jobs.lines(flag.case, READER)[0] == "PanDA jobs in these jobs: 1"
    assert service_jobs.lines(flag.case, User(pk=0, username="bob")) == []


def test_persons_and_jobs_without_panda_have_no_lines(pilots, case, django_assert_num_queries):
    assert service_jobs.lines(case, READER) == []
    put_inside(pilots[0], 1)
    with django_assert_num_queries(3):
        assert service_jobs.lines(case, READER)
    UserAccount.objects.update(team="")
    with django_assert_num_queries(1):
        assert service_jobs.lines(case, READER) == []


def test_the_mail_to_the_team_names_them(pilots, case):
    put_inside(pilots[0], 1)

    about = case_mail_texts.topics([case.pk], "pilot")
    content = compose.about_cases(about, UserAccount.objects.get())

    assert "PanDA tasks: 10995522 (1)" in content.text
