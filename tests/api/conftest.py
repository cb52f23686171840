"""Sources of a site, and deliveries on their behalf."""

import io
import json
import re
from functools import partial
from itertools import count

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command

from collectors.agent.delivery.batches import decoded, parted
from collectors.agent.files.tail import LogTail
from collectors.agent.files.traces import TraceReader
from ioportal.ingest import tasks
from tests import batches
from tests.conftest import SITE
from tests.loading import run_task
from tests.web.conftest import (
    _static_files_as_they_are,
    alice,
    cluster,
    heavy_job,
    new_case,
    new_flag,
    new_job,
    put_inside,
    sam,
)

__all__ = [
    "_static_files_as_they_are",
    "alice",
    "cluster",
    "heavy_job",
    "new_case",
    "new_flag",
    "new_job",
    "put_inside",
    "sam",
]

SOURCES = """
[[source]]
name = "mds1-trace"
format = "rpctrace"
server = "mds1"
poll_interval_s = 10

[[source]]
name = "mds1-jobs"
format = "job_stats"
server = "mds1"

[[source]]
name = "oss1-jobs"
format = "job_stats"
server = "oss1"

[[source]]
name = "mds1-totals"
format = "md_stats"
filesystem = "lake"

[[source]]
name = "mds1-exports"
format = "exports"
server = "mds1"

[[source]]
name = "anvil-jobs"
format = "sacct"
cluster = "anvil"

[[source]]
name = "anvil-queue"
format = "squeue"
cluster = "anvil"

[[source]]
name = "anvil-panda"
format = "panda"
cluster = "anvil"

[[source]]
name = "mds1-services"
format = "mds_stats"
server = "mds1"

[[source]]
name = "mds1-history"
format = "req_history"
server = "mds1"
"""


@pytest.fixture
def sources(register):
    """Register a small site whose servers and cluster send batches: see `SOURCES`."""
    register(SITE + SOURCES)


@pytest.fixture
def token(sources):
    """Create a token of a source like an admin, and return its secret."""
    secrets = {}

    def create(source):
        if source not in secrets:
            out = io.StringIO()
            options = ["--source", source]
            call_command("token", "create", "ingest", *options, stdout=out, stderr=io.StringIO())
            secrets[source] = out.getvalue().strip()
        return secrets[source]

    return create


@pytest.fixture
def deliver(client, token):
    """Deliver a batch on behalf of a source; return the status and the answer."""

    def send(batch, source="mds1-trace", kind=batches.ARROW, content=None, seconds=b"", **headers):
        manifest, rows = batch
        if content is None:
            content = batches.ENCODERS[kind](manifest["table"], rows)
        parts = {
            "batch": SimpleUploadedFile("batch", json.dumps(manifest).encode()),
            "rows": SimpleUploadedFile("rows", content, content_type=kind),
        }
        if seconds:
            parts["seconds"] = SimpleUploadedFile("seconds", seconds, content_type=kind)
        answer = client.post(
            "/api/v1/ingest/batches",
            parts,
            headers={
                "Authorization": f"Token {token(source)}",
                "Idempotency-Key": f"{manifest.get('stream')}/{manifest.get('sequence')}",
            }
            | {name.replace("_", "-"): value for name, value in headers.items()},
        )
        return answer.status_code, answer.json()

    return send


_STREAM = "7d0f6d1e-2c2a-4f57-9d5a-0f6b0a4ab001"


@pytest.fixture
def follow(deliver, tmp_path):
    """Let an agent follow a trace that grows by each text, and restart it before each read."""
    log, checkpoint, sequence = tmp_path / "rpctrace.log", {}, count(1)

    def run(*texts):
        nonlocal checkpoint
        for text in texts:
            with log.open("a") as growing:
                growing.write(text)
            reader = TraceReader(LogTail(str(log), settled_s=0))
            for reading in reader.read(checkpoint):
                checkpoint = json.loads(json.dumps(reading.checkpoint))
                for batch in reading.batches:
                    manifest, content = decoded(batch.encoded(_STREAM, next(sequence)))
                    rows, by_second = parted(manifest, content)
                    answer = deliver((manifest, ()), content=rows, seconds=by_second)
                    assert answer == (202, {"already": False})
            reader.close()

    return run


@pytest.fixture
def scrape(client, db):
    """Request the metrics like Prometheus; return them by name and labels."""
    out = io.StringIO()
    call_command("token", "create", "metrics", stdout=out, stderr=io.StringIO())

    def read():
        answer = client.get(
            "/api/v1/metrics", headers={"Authorization": f"Token {out.getvalue().strip()}"}
        )
        assert answer.status_code == 200
        lines = re.findall(r"^(\w+(?:\{.*\})?) (\S+)$", answer.content.decode(), re.MULTILINE)
        return {name: float(value) for name, value in lines}

    return read


@pytest.fixture
def attribute(db):
    """Run the attribution stage like a worker."""
    return partial(run_task, tasks.attribute_pending)


@pytest.fixture
def attribution(queries, attribute):
    """Return the RPCs by kind of principal and job."""

    def read():
        attribute()
        return {
            (kind, job): int(rpcs)
            for kind, job, rpcs in queries(
                """
                SELECT (ARRAY['job', 'process', 'host', 'pending', 'ambiguous', 'unattributed',
                    'contradicted'])
                    [w.kind], coalesce(j.batch_id, ''), sum(count)
                FROM telemetry_attributedrpc w LEFT JOIN jobs_job j ON j.id = w.job_id GROUP BY 1, 2
                """
            )
        }

    return read


@pytest.fixture
def secret_of(db, call):
    """Create a user with a token and return its secret."""

    secrets = {}

    def create(name, **facts):
        if name not in secrets:
            User.objects.get_or_create(username=name, defaults=facts)
            secrets[name] = call("token", "create", "read", "--user", name)
        return secrets[name]

    return create


@pytest.fixture
def get(client, secret_of):
    """Request an address of the API with the token of a user; sam is staff."""

    def send(path, user="sam", **headers):
        headers["Authorization"] = f"Token {secret_of(user, is_staff=user == 'sam')}"
        return client.get(f"/api/v1/{path}", headers=headers)

    return send
