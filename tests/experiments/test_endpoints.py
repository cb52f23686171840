"""Runs of experiments stored by programs, and files that they upload."""

import json
from datetime import timedelta

import pytest

from ioportal.experiments import uploads
from ioportal.experiments.experiments import named_experiment
from ioportal.experiments.models import Experiment, Run
from ioportal.jobs.models import Job, JobStatistics
from ioportal.site.models import Cluster
from tests.logs import at

BODY = {
    "arm": "xroot",
    "state": "finished",
    "events": 1000,
    "labels": {"protocol": "xroot", "locality": "local"},
    "metrics": {"cpu_s": 65.0, "wall_s": 100.0},
    "steps": [{"name": "stage in", "seconds": 12.5}],
    "recipe": {"release": "3_3_6"},
}
TABLE = b"arm,run,wall_s\nbefore,1,2.5\nbefore,2,2.6\n"


@pytest.fixture
def send(client, call, sam):
    """Send a request with a token of staff."""

    def request(method, path, body, scope="write", kind="application/json"):
        token = call("token", "create", scope, "--user", "sam")
        content = json.dumps(body) if kind == "application/json" else body
        headers = {"Authorization": f"Bearer {token}"}
        url = f"/api/v1/experiments/{path}"
        return client.generic(method, url, content, content_type=kind, headers=headers)

    return request


def test_a_run_is_stored_once_and_changed(send, sam):
    first = send("PUT", "Protocols/runs/1/", BODY).json()
    again = send("PUT", "protocols/runs/1/", BODY).json()
    send("PUT", "protocols/runs/1/", BODY | {"metrics": {"wall_s": 90}})

    run = Run.objects.get()
    url = f"http://localhost:8000/experiments/protocols/runs/{run.pk}/"
    assert (first, again) == ({"url": url, "created": True}, {"url": url, "created": False})
    assert (run.experiment.owner, run.arm.name, run.events) == (sam, "xroot", 1000)
    assert run.metrics == {"cpu_s": 65.0, "wall_s": 90.0}
    assert (run.labels, run.recipe) == (BODY["labels"], BODY["recipe"])


def test_a_name_that_only_others_use_is_refused(send, alice):
    named_experiment("Protocols, remote", alice)

    refused = send("PUT", "Protocols,%20remote/runs/1/", BODY)
    stored = send("PUT", "protocols-remote/runs/1/", BODY)

    assert (refused.status_code, refused.json()["code"]) == (409, "ambiguous_name")
    assert "'protocols-remote' (owner: alice)" in refused.json()["detail"]
    assert stored.status_code == 200


def test_the_figures_of_a_batch_job_become_metrics(send):
    job = Job.objects.create(
        cluster=Cluster.objects.create(name="anvil"), batch_id="7", owner="alice", cpu_s=50,
        submitted_at=at("12:00"), started_at=at("12:00"), ended_at=at("12:00") + timedelta(hours=1),
    )  # fmt: skip
    JobStatistics.objects.create(
        job=job, computed_at=at("14:00"), duration_s=3600, opens=12, read_bytes=5
    )
    named = {"job": {"cluster": "anvil", "batch_id": "7"}, "labels": {"protocol": "dcap"}}
    send("PUT", "jobs/runs/7/", named)

    run = Run.objects.get()
    assert (run.job, run.started_at) == (job, at("12:00"))
    assert run.metrics == {"wall_s": 3600, "cpu_s": 50, "opens": 12, "read_bytes": 5}


def test_an_unknown_job_is_refused(send):
    named = {"job": {"cluster": "anvil", "batch_id": "7"}}

    assert send("PUT", "jobs/runs/7/", named).json()["code"] == "job"
    assert not Experiment.objects.exists()


@pytest.mark.parametrize(
    "change",
    [{"metrics": {"wall_s": 1e400}}, {"scale": -1}, {"state": "lost"}, {"steps": [{}]}, {"x": 1}],
    ids=str,
)
def test_invalid_runs_are_refused(send, alice, change):
    assert send("PUT", "p/runs/1/", BODY | change).status_code in {400, 422}
    assert not Run.objects.exists()


def test_an_uploaded_file_is_loaded(send):
    kind = "application/octet-stream"
    sent = send("POST", "Tables/files/?name=runs.csv", TABLE, kind=kind)
    assert (sent.status_code, sent.json()["state"]) == (202, "pending")
    uploads.load_next(1)

    state = send("GET", f"uploads/{sent.json()['id']}/", None, scope="read").json()
    assert (state["state"], state["message"]) == ("loaded", "3 lines, none rejected.")
    assert state["url"] == "http://localhost:8000/experiments/tables/"
    assert [run.metrics for run in Run.objects.all()] == [{"wall_s": 2.5}, {"wall_s": 2.6}]
