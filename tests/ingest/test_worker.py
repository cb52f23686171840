"""A real worker with forked children and the real broker computes statistics of loaded data."""

import os
import signal
import subprocess
import sys
import time

import pytest
from django.db import connection
from kombu import Connection

from ioportal.celery import app
from ioportal.core.stages import ATTRIBUTE_PENDING
from ioportal.ingest.models import DirtyTrace, Segment
from ioportal.jobs.models import JobStatistics
from tests.conftest import REPOSITORY, SITE, broker_of_our_own
from tests.logs import Run, at, job_stats, rpc, sacct
from tests.processes import ENDS_WITH_PARENT

pytestmark = [
    pytest.mark.long,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("site"),
]

WITHIN_S = 60
ACTIVE_QUERIES = """
SELECT 1 FROM pg_stat_activity
WHERE datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid()
"""


@pytest.fixture
def worker(environment):
    """Start a worker with two children, and kill it before the tables are emptied."""
    command = [sys.executable, "-m", "celery", "--quiet", "--app", "ioportal.celery", "worker"]
    options = ["--pool=prefork", "--concurrency=2", "--include=tests.ingest.child"]
    worker = subprocess.Popen(
        [*ENDS_WITH_PARENT, *command, *options, "--loglevel=WARNING"],
        env=environment,
        start_new_session=True,
    )
    yield worker
    _kill(worker)
    with Connection(environment["IOPORTAL_BROKER_URL"]) as broker:
        app.control.purge(broker)
    wait_for(_database_is_idle, "the end of the worker's transactions")


@pytest.fixture
def send():
    """Send a task to the worker."""

    def run(name, *arguments):
        with Connection(broker_of_our_own()) as broker:
            app.send_task(name, arguments, connection=broker)

    return run


@pytest.fixture
def manage(environment):
    """Run manage.py in a process, like an admin."""

    def run(*arguments):
        return subprocess.run(
            [sys.executable, "manage.py", *map(str, arguments)],
            cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip

    return run


def _kill(worker):
    """Kill a worker and its children immediately."""
    if worker.poll() is None:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()


def _database_is_idle():
    with connection.cursor() as cursor:
        cursor.execute(ACTIVE_QUERIES)
        return not cursor.fetchall()


def wait_for(condition, what):
    until = time.monotonic() + WITHIN_S
    while time.monotonic() < until:
        if condition():
            return
        time.sleep(0.1)
    pytest.fail(f"{what}: not within {WITHIN_S} s")


@pytest.mark.usefixtures("worker")
def test_statistics_are_computed_after_a_load(logs, ingest, manage, reconcile):
    ingest("sacct", logs("s", sacct(Run("77"))), cluster="anvil")
    dumps = []
    for clock, opens in (("12:00", 0), ("12:30", 700), ("13:00", 900)):
        dump = logs(clock, job_stats("lake-MDT0000", {"77": {"open": opens}}, snapshot=clock))
        os.utime(dump, (at(clock).timestamp(),) * 2)
        dumps.append(dump)

    completed = manage("ingest", "job_stats", *dumps)

    assert completed.returncode == 0, completed.stderr
    wait_for(lambda: JobStatistics.objects.filter(opens=900).exists(), "the job's statistics")
    assert reconcile()


@pytest.mark.usefixtures("worker")
def test_a_forked_child_parses_files(logs, send):
    lines = [rpc(f"12:{n // 6000:02}:{n / 100 % 60:.2f}", f"{n % 500}@gni") for n in range(30_000)]
    path = logs("t", "\n".join(lines))

    for _ in range(2):  # once for each child
        send("tests.ingest.child.ingest", "rpctrace", str(path), "--server=mds1")

    wait_for(Segment.objects.filter(operations=30_000).exists, "a child's load")


def test_a_failed_command_exits_with_status_1(logs, manage):
    completed = manage("ingest", "rpctrace", logs("t", "another format"), "--server=mds1")

    assert completed.returncode == 1
    assert "none of its 1 lines is Lustre RPC trace" in completed.stderr


def test_attribution_completes_after_a_worker_is_killed(
    logs, ingest, register, worker, send, attribute, queries
):
    lines = [rpc(f"12:{n // 600:02}:{n / 10 % 60:.1f}", f"{n % 500}@gni") for n in range(20_000)]
    ingest("rpctrace", logs("t", "\n".join(lines)), server="mds1")
    ingest("sacct", logs("s", sacct(Run("77", nodes="n[1-20]", node_count=20))), cluster="anvil")
    before = queries("SELECT sum(count) FROM telemetry_attributedrpc WHERE job_id <> 0")
    register(SITE)  # marks all stored data for attribution
    send(ATTRIBUTE_PENDING)
    # The worker may be killed before, during or after attribution.
    wait_for(lambda: not DirtyTrace.objects.exists() or _is_attributing(queries), "the worker")

    _kill(worker)
    # The worker's lock persists until the database detects the closed connection.
    wait_for(_database_is_idle, "the end of the worker's transactions")
    attribute()

    assert not DirtyTrace.objects.exists()
    assert queries("SELECT sum(count) FROM telemetry_attributedrpc WHERE job_id <> 0") == before
    assert queries("SELECT sum(count) FROM telemetry_attributedrpc") == [(20_000,)]


def _is_attributing(queries):
    return queries(f"{ACTIVE_QUERIES} AND position('telemetry_attributedrpc' IN query) > 0")
