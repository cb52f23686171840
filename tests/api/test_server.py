"""The real web server with forked workers: acknowledged batches are stored exactly once."""

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
import urllib3
from django.db import connection, transaction

from ioportal.ingest.models import Segment
from ioportal.site.models import Cluster, Server
from tests.batches import ARROW, arrow, traced, window
from tests.conftest import REPOSITORY
from tests.processes import ENDS_WITH_PARENT

pytestmark = [
    pytest.mark.long,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("sources"),
]

WITHIN_S = 60
BLOCKED_BY_TEST = """
SELECT 1 FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))
"""
OTHER_CONNECTIONS = """
SELECT 1 FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""


@pytest.fixture
def server(environment):
    """Start a web server with two workers; all end with the test."""
    started = []

    def start():
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        command = [sys.executable, "-m", "granian", "--interface", "asginl", "--workers", "2"]
        address = ["--host", "127.0.0.1", "--port", str(port), "--log-level", "warning"]
        process = subprocess.Popen(
            [*ENDS_WITH_PARENT, *command, *address, "ioportal.asgi:application"],
            cwd=REPOSITORY, env=environment, start_new_session=True,
        )  # fmt: skip
        started.append(process)
        url = f"http://127.0.0.1:{port}"
        wait_for(lambda: curl(f"{url}/api/v1/openapi.json")[0] == 200, "the server")
        return url, process

    yield start
    for process in started:
        kill(process)
    wait_for(no_other_connections, "the end of the server's transactions")


@pytest.fixture
def send(token, tmp_path):
    """Deliver a batch from a separate process, like an agent."""
    secret = token("mds1-trace")

    def run(url, batch):
        manifest, rows = batch
        folder = tmp_path / f"{manifest['stream']}-{manifest['sequence']}-{time.monotonic_ns()}"
        folder.mkdir()
        (folder / "batch").write_text(json.dumps(manifest))
        (folder / "rows").write_bytes(arrow(manifest["table"], rows))
        return curl(
            f"{url}/api/v1/ingest/batches",
            *("--header", f"Authorization: Token {secret}"),
            *("--header", f"Idempotency-Key: {manifest['stream']}/{manifest['sequence']}"),
            *("--form", f"batch=@{folder}/batch", "--form", f"rows=@{folder}/rows;type={ARROW}"),
        )

    return run


def curl(*arguments):
    """Return the status and body of an answer; status 0 means no answer."""
    answer = subprocess.run(
        ["curl", "--silent", "--max-time", "60", "--write-out", r"\n%{http_code}", *arguments],
        capture_output=True, text=True, check=False,
    ).stdout  # fmt: skip
    body, _, status = answer.rpartition("\n")
    return int(status), body


def kill(process):
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def no_other_connections():
    with connection.cursor() as cursor:
        cursor.execute(OTHER_CONNECTIONS)
        return not cursor.fetchall()


def wait_for(condition, what):
    until = time.monotonic() + WITHIN_S
    while time.monotonic() < until:
        if condition():
            return
        time.sleep(0.1)
    pytest.fail(f"{what}: not within {WITHIN_S} s")


@contextmanager
def commits_blocked():
    """Lock a row that every batch needs before its commit."""
    with transaction.atomic():
        Server.objects.select_for_update().get(name="mds1")
        yield


def batches(count):
    return [
        traced(
            n + 1, f"12:00:{n * 4:02}", f"12:00:{n * 4 + 4:02}",
            *(window(f"12:00:{n * 4 + 1:02}", f"{nid}@gni") for nid in range(500)),
        )
        for n in range(count)
    ]  # fmt: skip


def test_parallel_unordered_and_repeated_deliveries_are_stored_once(
    server, send, queries, reconcile
):
    url, _ = server()
    deliveries = batches(8) * 4
    random.Random(2017).shuffle(deliveries)  # noqa: S311  (an order, not a secret)

    with ThreadPoolExecutor(8) as agents:
        answers = list(agents.map(lambda batch: send(url, batch), deliveries))

    assert [status for status, _ in answers] == [202] * 32
    assert sum("false" in body for _, body in answers) == 8
    assert queries("SELECT count(*), sum(count) FROM telemetry_rpcwindow") == [(4_000, 4_000)]
    assert queries("SELECT count(*) FROM telemetry_coverage") == [(1,)]
    assert reconcile() == "8 segments reconcile."


def test_a_server_killed_before_the_commit_stores_nothing(server, send, queries, reconcile):
    url, process = server()
    [batch] = batches(1)
    with ThreadPoolExecutor(1) as agent, commits_blocked():
        answer = agent.submit(send, url, batch)
        wait_for(lambda: queries(BLOCKED_BY_TEST), "a delivery whose rows are written")
        kill(process)
        assert answer.result()[0] == 0
    wait_for(no_other_connections, "the end of the uncommitted transaction")
    assert not Segment.objects.exists()

    url, _ = server()

    assert json.loads(send(url, batch)[1]) == {"already": False}
    assert json.loads(send(url, batch)[1]) == {"already": True}
    assert queries("SELECT count(*) FROM telemetry_rpcwindow") == [(500,)]
    assert reconcile()


@pytest.fixture
def cluster(db):
    """The cluster of the examples."""
    return Cluster.objects.create(name="titan", time_zone="UTC", batch_system="pbs")


@pytest.fixture
def pilot(new_job, put_inside):
    """The batch job of the examples, with its PanDA jobs."""
    figures = {
        "duration_s": 3_600, "opens": 2_106_213, "closes": 2_104_987, "write_bytes": 2_048_000_000,
        "metadata_operations": 6_312_004, "peak_metadata_rate": 12_044.5,
    }  # fmt: skip
    job = new_job(figures, batch_id="3567126")
    put_inside(job, *range(4_012_345_676, 4_012_345_679), reported_batch_id="3567126.titan")
    return job


def test_the_examples_in_the_documentation_work(
    server, token, call, sam, pilot, tmp_path, attribute, queries
):
    url, _ = server()
    text = (REPOSITORY / "docs/api.md").read_text()
    secrets = {
        "TOKEN": call("token", "create", "read", "--user", "sam"),
        "WRITE_TOKEN": call("token", "create", "write", "--user", "sam"),
        "INGEST_TOKEN": token("mds1-trace"),
        "METRICS_TOKEN": call("token", "create", "metrics"),
        "BOUNCES_TOKEN": call("token", "create", "bounces"),
    }

    outputs = []
    for example in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
        script = example.replace("https://io.example.org", url).replace("curl ", "curl --fail ")
        completed = subprocess.run(
            ["sh", "-eu", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False,
            env={"PATH": os.environ["PATH"], **secrets},
        )  # fmt: skip
        assert completed.returncode == 0, (example, completed.stderr)
        outputs.append(completed.stdout)

    first, listed, jobs, exported, written, run, *more = outputs
    cached, batch, bounce, report, metrics = more
    described = re.search(r"```json\n(.*?)```", text, re.DOTALL)[1]
    assert json.loads(first) == json.loads(described)
    assert json.loads(listed)["unknown"] == {"batchid": ["3567127"]}
    assert json.loads(jobs)["rows"][0]["metadata_operations"] == 6_312_004
    assert (tmp_path / "panda.csv").read_text().count("\n") > 0
    assert "3567126" in exported
    assert json.loads(written)["created"]
    assert json.loads(run)["created"]
    assert cached == "304\n"
    assert batch == '{"already": false}'
    assert json.loads(bounce) == {"matched": False}
    assert "3567126" in report
    assert "ioportal_database_bytes" in metrics
    attribute()
    assert queries("SELECT sum(count) FROM telemetry_attributedrpc") == [(7,)]


def test_pandas_monitor_looks_up_a_thousand_jobs_in_one_request(server, call, sam, pilot):
    url, _ = server()
    secret = call("token", "create", "read", "--user", "sam")
    ids = ",".join(str(4_012_345_676 + number) for number in range(1_000))
    monitor = urllib3.PoolManager(
        headers={"Accept": "application/json", "Authorization": f"Token {secret}"}
    )

    answer = monitor.request("GET", f"{url}/api/v1/jobs/query/?json&pandaid={ids}")

    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
    records = json.loads(answer.data)
    assert len(records) == 1_000
    assert [id_ for id_, record in records.items() if record] == [
        "4012345678", "4012345677", "4012345676",
    ]  # fmt: skip
    most = ",".join(str(4_012_000_000 + number) for number in range(2_000))
    assert monitor.request("GET", f"{url}/api/v1/jobs/query/?json&pandaid={most}").status == 200
