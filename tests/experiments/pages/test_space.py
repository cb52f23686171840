"""Content is refused while the database's disk is nearly full, and beyond quotas."""

import json
import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError

from ioportal.api.urls import api
from ioportal.experiments import uploads
from ioportal.experiments.experiments import RunRecord, named_experiment, record_runs
from ioportal.experiments.models import Attachment, Experiment, Upload, UploadPart
from ioportal.site.models import Cluster
from tests.experiments.pages.conftest import RUNS
from tests.web.reading import words_of

UPLOAD = "/experiments/upload/"
DECLARED = {"experiment": "Protocols", "declared": '[["runs.csv", 1000]]'}
RUN = "/experiments/protocols/runs/{run}/"
CLUSTER = '[[cluster]]\nname = "anvil"\ntime_zone = "UTC"\nbatch = "slurm"\n'
SOURCE = '[[source]]\nname = "s"\nformat = "sacct"\ncluster = "anvil"\n'
LARGE = "x" * 100_000
# Look-ups read. A report of a bounce only changes the state of a mail.
STORE_NOTHING = {"/api/v1/jobs/query/", "/api/v1/bounces"}
WRITES = sorted(
    (method, path)
    for path, operations in api.get_openapi_schema()["paths"].items()
    for method in operations
    if method != "get" and path not in STORE_NOTHING
)


@pytest.fixture
def run(alice):
    """Return a run of an experiment of alice, which is in a project."""
    experiment = named_experiment("Protocols", alice)
    Experiment.objects.filter(pk=experiment.pk).update(project="PHY12")
    experiment.refresh_from_db()
    [stored] = record_runs(experiment, [RunRecord("b1")])
    return stored


@pytest.fixture
def secret_of(sam, call, register):
    """Create a token that permits an operation; return its secret."""

    def create(path):
        if path.startswith("/api/v1/ingest/"):
            register(CLUSTER + SOURCE)
            return call("token", "create", "ingest", "--source", "s")
        return call("token", "create", "write", "--user", sam.username)

    return create


@pytest.mark.parametrize(("method", "path"), WRITES)
def test_no_operation_of_the_api_stores_content_on_a_full_disk(
    client, secret_of, request, method, path
):
    secret = secret_of(path)
    request.getfixturevalue("full_disk")
    url = re.sub(r"\{\w+\}", "protocols", path)

    answer = client.generic(method.upper(), url, "{}", headers={"Authorization": f"Token {secret}"})

    assert (answer.status_code, answer["Retry-After"]) == (429, "30")
    assert answer.json()["code"] == "behind"
    assert "IOPORTAL_DATABASE_FREE" in answer.json()["detail"]
    assert not Experiment.objects.exists()


@pytest.mark.parametrize(
    ("path", "data"),
    [
        pytest.param(UPLOAD, DECLARED, id="the names of large files"),
        pytest.param(UPLOAD, {"experiment": "Protocols", "content": "file"}, id="small files"),
        pytest.param("{part}", "content", id="a part of a file"),
        pytest.param(RUN + "attach/", {"file": "file"}, id="a file"),
        pytest.param("/ingest/tables/", {"table": "users", "file": "file"}, id="a table"),
        pytest.param(
            "/experiments/protocols/edit/",
            {"name": "Protocols", "description": LARGE},
            id="a long description",
        ),
    ],
)  # fmt: skip
def test_no_page_stores_content_on_a_full_disk(as_staff, as_alice, run, request, path, data):
    target = as_alice.post(UPLOAD, DECLARED).json()
    client = as_staff if path.startswith("/ingest") else as_alice
    url = path.format(run=run.pk, part=f"{target['files'][0]}0/")
    request.getfixturevalue("full_disk")
    if isinstance(data, dict):
        files = {
            name: SimpleUploadedFile("users.csv", b"name,email\nu,u@example.org\n")
            for name, value in data.items()
            if value == "file"
        }
        answer = client.post(url, data | files)
    else:
        answer = client.post(url, b"x" * 1_000, content_type="application/octet-stream")

    assert (answer.status_code, answer["Retry-After"]) == (503, "30")
    assert "nothing new is stored below" in words_of(answer)
    assert Upload.objects.count() == 1
    assert not UploadPart.objects.exists()
    assert not Attachment.objects.exists()
    assert Experiment.objects.get().description == ""


@pytest.mark.usefixtures("full_disk")
def test_short_texts_are_stored_on_a_full_disk(as_alice, run):
    form = {"name": "Protocols", "description": "Short"}

    assert as_alice.post("/experiments/protocols/edit/", form).status_code == 302
    assert Experiment.objects.get().description == "Short"


def test_commands_register_nothing_on_a_full_disk(register, request):
    request.getfixturevalue("full_disk")

    with pytest.raises(CommandError, match="nothing new is stored below"):
        register(CLUSTER)
    assert not Cluster.objects.exists()


def test_uploads_wait_for_space(as_alice, settings, tmp_path, latest):
    files = [SimpleUploadedFile("runs.csv", RUNS.encode())]
    state = as_alice.post(UPLOAD, {"experiment": "Protocols", "content": files})["Location"]
    settings.DATABASE_FOLDERS, settings.DATABASE_FREE_BYTES = [str(tmp_path)], 2**60

    refused = as_alice.post(UPLOAD, DECLARED, headers={"Accept": "application/json, text/plain"})

    assert refused.content.startswith(b"The database's disk has")  # for the script of the page
    assert "Uploads must wait: The database's disk has" in words_of(as_alice.get(UPLOAD))
    assert uploads.load_next(5) == 0
    assert (latest().state, latest().attempts) == (Upload.State.PENDING, 0)
    assert "It is loaded later: The database's disk has" in words_of(as_alice.get(state))

    settings.DATABASE_FREE_BYTES = 1
    assert uploads.load_next(5) == 1
    assert latest().state == Upload.State.LOADED


@pytest.mark.parametrize(
    ("quota", "holder"),
    [("USER_QUOTA_BYTES", "alice"), ("PROJECT_QUOTA_BYTES", "project PHY12")],
)
def test_quotas_count_attachments_and_waiting_uploads(as_alice, run, settings, quota, holder):
    setattr(settings, quota, 2_500_000)
    attach = RUN.format(run=run.pk) + "attach/"

    def send(size):
        return as_alice.post(attach, {"file": SimpleUploadedFile("a", b"x" * size)}, follow=True)

    def declare(size):
        return as_alice.post(UPLOAD, DECLARED | {"declared": json.dumps([["a", size]])})

    assert "Attached: a" in words_of(send(1_000_000))
    assert declare(1_000_000).status_code == 201
    refusal = (
        f"The quota of {holder} is 2.5 MB, of which 2.0 MB are in use. This needs 0.6 MB more. "
        "Delete attachments, wait until uploads are loaded, or ask an administrator to raise "
        f"IOPORTAL_{quota.removesuffix('_BYTES')}."
    )
    assert declare(600_000).json() == {"errors": {"content": [refusal]}}
    page = words_of(send(600_000))
    assert refusal in page
    assert f"Quota of {holder}: 2.00 MB of 2.50 MB in use" in page
    assert "1 of at most 100 attachments" in page
    assert "Attached: a" in words_of(send(500_000))

    Upload.objects.update(state=Upload.State.LOADED)
    assert declare(900_000).status_code == 201


def test_a_run_has_a_limited_number_of_attachments(as_alice, run, monkeypatch):
    monkeypatch.setattr(uploads, "ATTACHMENTS", 1)
    attach = RUN.format(run=run.pk) + "attach/"
    first, second = (
        words_of(as_alice.post(attach, {"file": SimpleUploadedFile("a", b"x")}, follow=True))
        for _ in range(2)
    )

    assert "Attached: a" in first
    assert "Run b1 has 1 attachments, the most that a run may have" in second
    assert run.attachments.count() == 1
