"""Reports of jobs, with tokens of users."""

import json
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group, User

from ioportal.findings.models import Flag
from ioportal.jobs.models import DirtyStatistics
from ioportal.telemetry.models import ImpactWindow, Principal
from tests.web import rows

FIGURES = {
    "metadata_operations": 90_000,
    "peak_metadata_rate": 120.5,
    "peak_resolution_s": 600,
    "read_bytes": 10_000_000,
}


@pytest.fixture
def report(client, secret_of):
    """Request the report of a job with the token of a user."""

    def read(job="3567000", user="alice", accept="text/plain", place="anvil"):
        headers = {"Authorization": f"Token {secret_of(user)}", "Accept": accept}
        return client.get(f"/api/v1/jobs/{place}/{job}/report", headers=headers)

    return read


def test_a_report_in_text(new_job, report):
    job = new_job(FIGURES, name="relax\x1b[31m")
    similar = {"started_at": job.started_at - timedelta(days=1)}
    for operations in range(20):
        new_job({"metadata_operations": 1_000 * operations}, name=job.name, **similar)
    rows.flag_job(job, value=90_000, advice="Keep software off Lustre. " * 20)

    answer = report()

    assert (answer.status_code, answer["Content-Type"]) == (200, "text/plain; charset=utf-8")
    text = answer.content.decode()
    lines = [" ".join(line.split()) for line in text.splitlines()]
    for line in (
        r"Job 3567000 on anvil: relax\x1b[31m",
        "User alice, project PHY12",
        "Run 2017-07-05 12:00:00 to 2017-07-05 13:00:00 UTC",
        "1:00:00, completed",
        "Nodes 2 (2.00 node-hours)",
        "Metadata operations 90,000 operations",
        "45,000 operations per node-hour",
        "Peak metadata rate 120 operations/s over 0:10:00",
        "Read 10.0 MB",
        "Written unknown",
        "Data quality good (counters)",
        "Excessive metadata operations (warning)",
    ):
        assert line in lines
    assert "100 % of 20 similar jobs have less (median 9,500 operations)" in " ".join(lines)
    assert lines[-1].endswith(f"/jobs/{job.pk}/")
    assert max(map(len, text.splitlines()[:-1])) <= 78


def test_a_report_for_programs(new_job, report):
    job = new_job(FIGURES)
    flag = rows.flag_job(job, value=90_000)
    rows.flag_job(job, rule="stat-storm", suppression_reasons=["too little coverage"])

    answer = report(accept="application/json")

    assert answer["Content-Type"] == "application/json"
    facts = answer.json()
    assert (facts["job"], facts["cluster"], facts["quality"]) == (job.display_id, "anvil", "good")
    assert facts["metadata_operations_per_node_hour"] == 45_000
    assert facts["impact_s"] is None
    assert [finding["title"] for finding in facts["flags"]] == [flag.title]


def test_impact_on_others_is_part_of_the_report(new_job, report, slow_down):
    job = new_job(FIGURES)
    slow_down(job, impact_us=12_300_000)

    text = " ".join(report().content.decode().split())

    assert "Impact extra wait of other users 12.0 s (measured)" in text


@pytest.fixture
def slow_down(db):
    """Store the impact of a job."""

    def store(job, impact_us):
        ImpactWindow.objects.create(
            start=job.started_at, server_id=1, kind=Principal.JOB, principal_id=job.pk,
            impact_us=impact_us, work_us=1, all_work_us=2, others_us=9, others_usual_us=5,
        )  # fmt: skip

    return store


def test_a_report_of_an_array_task(new_job, report):
    new_job(FIGURES, batch_id="77", array_index="1", name="first")
    new_job(FIGURES, batch_id="77", array_index="2", name="second")

    assert "Job 77[1] on anvil: first" in report("77[1]").content.decode()


def test_tokens_see_only_what_their_user_may_see(new_job, report):
    new_job(FIGURES)
    bob = User.objects.create(username="bob")
    bob.groups.add(Group.objects.create(name="PHY12"))

    assert report(user="bob").status_code == 200
    assert report(user="charlie").status_code == 404
    assert report(user="charlie").json()["code"] == "job"
    assert report(place="birch").status_code == 404
    assert report(job="%00").status_code == 404


def test_findings_on_poor_data_are_not_reported_to_staff_either(new_job, report, secret_of):
    job = new_job(FIGURES)
    rows.flag_job(job, suppression_reasons=["too little coverage"])
    secret_of("sam", is_staff=True)

    assert json.loads(report(user="sam", accept="application/json").content)["flags"] == []
    assert Flag.objects.count() == 1


@pytest.mark.parametrize("state", ["running", "no statistics", "pending"])
def test_a_report_follows_the_end_and_the_statistics(new_job, report, state):
    facts = {"ended_at": None} if state == "running" else {}
    job = new_job(None if state == "no statistics" else FIGURES, **facts)
    if state == "pending":
        DirtyStatistics.objects.create(job_id=job.pk)

    answer = report()

    assert (answer.status_code, answer.json()["code"]) == (409, "pending")
    assert answer["Retry-After"] == "15"


def test_a_token_of_an_inactive_user_is_refused(new_job, client, secret_of):
    new_job(FIGURES)
    headers = {"Authorization": f"Token {secret_of('alice')}"}
    User.objects.update(is_active=False)

    assert client.get("/api/v1/jobs/anvil/3567000/report", headers=headers).status_code == 401


def test_queries_of_a_report_are_few(new_job, report, secret_of, client, django_assert_num_queries):
    job = new_job(FIGURES)
    for rule in ("metadata-operations", "stat-storm", "small-reads"):
        rows.flag_job(job, rule=rule)
    headers = {"Authorization": f"Token {secret_of('alice')}"}

    with django_assert_num_queries(12):
        client.get("/api/v1/jobs/anvil/3567000/report", headers=headers)
