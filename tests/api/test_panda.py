"""Tasks, queues, timelines and records of PanDA jobs."""

import json
from datetime import timedelta
from statistics import median

import pytest

from ioportal.api.panda import jobs
from ioportal.jobs.models import WorkloadJob
from tests.logs import at
from tests.web import rows


@pytest.fixture
def write(client, call, sam):
    """Send records with a token to write."""
    token = call("token", "create", "write", "--user", "sam")

    def send(content, cluster="anvil"):
        return client.post(
            f"/api/v1/panda/records/?cluster={cluster}",
            content if isinstance(content, str) else json.dumps(content),
            content_type="application/json",
            headers={"Authorization": f"Token {token}"},
        )

    return send


@pytest.mark.parametrize(
    "path",
    [
        "tasks/10995522/",
        "sites/ORNL_Titan_MCORE/",
        "sites/ORNL_Titan_MCORE/?start=2017-07-05&end=2017-07-09",
    ],
)
def test_aggregates_of_a_task_and_of_a_queue(get, new_job, put_inside, path):
    opens = [100, 200, 600]
    for number, count in enumerate(opens):
        start = at("12:00") + timedelta(days=number)
        job = new_job({"opens": count, "metadata_operations": 4 * count}, started_at=start)
        times = {"started_at": start, "ended_at": start + timedelta(minutes=10 * (number + 1))}
        put_inside(job, *range(3 * number, 3 * number + number + 1), **times)
    WorkloadJob.objects.filter(panda_id=8).update(state="failed")
    rows.flag_job(job)
    put_inside(new_job({"opens": 7}, owner="bob", project="X"), 99, task_id=5, site="other")

    answer = get(f"panda/{path}").json()

    assert (answer["npandajobs"], answer["nbatchjobs"]) == (6, 3)
    assert answer["jobstatus"] == {"finished": 5, "failed": 1}
    run_time = answer["statistics"]["panda_duration_s"]
    assert (run_time["n"], run_time["p50"], run_time["of"]) == (6, 1_500, "PanDA job")
    opens_of_jobs = answer["statistics"]["opens"]
    assert (opens_of_jobs["n"], opens_of_jobs["mean"], opens_of_jobs["of"]) == (3, 300, "batch job")
    assert sum(answer["histograms"]["opens"]["counts"]) == 3
    assert answer["quality"] == {"good": 3, "partial": 0, "poor": 0}
    ended = answer["trend"]["rows"]
    assert sum(row["finished"] or 0 for row in ended) == 5
    medians = [row["batch_job_opens_median"] for row in ended if row["batch_job_opens_median"]]
    assert median(medians) == 200
    assert answer["flags"] == [
        {"rule": "metadata-operations", "title": "Excessive metadata operations", "nbatchjobs": 1}
    ]
    assert get(f"panda/{path}", user="bob").status_code == 404


def test_records_are_stored_and_linked_once(write, new_job):
    job = new_job(batch_id="3567126")
    record = {
        "pandaid": 4012345678, "jeditaskid": 10995522, "jobstatus": "finished",
        "batchid": "3567126", "computingsite": "ORNL_Titan_MCORE",
        "starttime": "2017-07-05T12:05:00", "endtime": "2017-07-05T12:55:00",
        "modificationtime": "2017-07-05T12:56:00",
    }  # fmt: skip
    flawed = [
        {**record, "pandaid": "x"},
        {**record, "pandaid": 0},
        {**record, "modificationtime": "2099-07-05T12:56:00", "jobstatus": "failed"},
    ]

    first = write({"jobs": [record, *flawed]}).json()
    again = write({"jobs": [record, *flawed]}).json()

    assert (first["accepted"], first["rejected"], first["already"]) == (1, 3, False)
    assert len(first["reasons"]) == 3
    assert (again["accepted"], again["already"]) == (1, True)
    stored = WorkloadJob.objects.get()
    assert (stored.panda_id, stored.batch_job, stored.state) == (4012345678, job, "finished")


@pytest.mark.parametrize(
    ("content", "place", "status", "code"),
    [
        ({"jobs": []}, "nowhere", 404, "cluster"),
        ("", "anvil", 422, "refused"),
        ("{", "anvil", 422, "refused"),
        ("[" * 10_000, "anvil", 422, "refused"),
        ('{"x": 1}', "anvil", 422, "refused"),
    ],
)
@pytest.mark.usefixtures("cluster")
def test_records_that_cannot_be_stored(write, content, place, status, code):
    answer = write(content, place)

    assert (answer.status_code, answer.json()["code"]) == (status, code)


@pytest.mark.usefixtures("cluster")
def test_the_content_of_a_compressed_body_is_limited(write, monkeypatch):
    monkeypatch.setattr(jobs, "_CONTENT_BYTES", 8)

    assert "larger than permitted" in write({"jobs": []}, "anvil").json()["detail"]
