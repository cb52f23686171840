"""A served portal with the jobs of `stories` and `campaigns`, and the command line `ioportal`."""

import io

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection, transaction
from django.test import override_settings
from ioportal_client.commands import main
from pytest_django.live_server_helper import LiveServer

from ioportal.findings.models import Flag
from ioportal.jobs.models import Job
from tests import contents
from tests.web import rows, stories
from tests.web.comparisons import campaigns

HOSTILE = "\x1b]0;owned\x07\x9b2J\u202egpj.exe\r\x7f"  # a name that users may give to a job
FIRST_KEYS = {"jobs_job": 48_211, "findings_case": 17}  # as in docs/client.md


@pytest.fixture(scope="module")
def heavy_job(django_db_setup, django_db_blocker, tmp_path_factory):
    """The jobs of `stories.heavy_job` and `campaigns.add`, with flags and a PanDA job."""
    with django_db_blocker.unblock():
        with connection.cursor() as cursor:
            for table, key in FIRST_KEYS.items():
                cursor.execute(f"ALTER SEQUENCE {table}_id_seq RESTART WITH {key}")
        job = stories.heavy_job(tmp_path_factory.mktemp("logs"))
        Job.objects.filter(pk=job.pk).update(name="relax")
        job.refresh_from_db()
        campaigns.add(job.cluster)
        rows.put_inside(job, 4012345678)
        hostile = rows.unsaved_job(
            job.started_at, cluster=job.cluster, batch_id="66", name=HOSTILE, project=HOSTILE
        )
        hostile.save()
        with transaction.atomic():
            rows.flag_job(job)
            rows.flag_job(hostile, severity=Flag.Severity.NOTICE)
        User.objects.create(username="alice")
        User.objects.create(username="charlie")
        User.objects.create(username="sam", is_staff=True)
        yield job
        contents.remove()
        connection.close()


@pytest.fixture
def db(heavy_job):
    """Data is committed for the server, and removed after the last test of the module."""


@pytest.fixture(scope="module")
def portal(heavy_job):
    """Serve the portal; return its address."""
    with override_settings(PORTAL_URL="https://io.example.org"):
        server = LiveServer("localhost")
        yield server.url
        server.stop()


@pytest.fixture(scope="module")
def token_file(heavy_job, tmp_path_factory):
    """Write the file with a token of a user, and return its path."""

    def write(user):
        path = tmp_path_factory.mktemp(user) / "token"
        out = io.StringIO()
        arguments = ["create", "read", "--user", user]
        call_command("token", *arguments, stdout=out, stderr=io.StringIO())
        path.touch(0o600)
        path.write_text(out.getvalue())
        return path

    files = {}
    return lambda user: files.get(user) or files.setdefault(user, write(user))


@pytest.fixture
def ioportal(portal, token_file, monkeypatch, capsys):
    """Run ``ioportal`` as a user; return its exit status, output and errors."""

    def run(*arguments, user="sam"):
        monkeypatch.setenv("IOPORTAL_URL", portal)
        monkeypatch.setenv("IOPORTAL_TOKEN_FILE", str(token_file(user)))
        monkeypatch.setenv("IOPORTAL_CLUSTER", "anvil")
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as end:
            status = end.code
        return status, *capsys.readouterr()

    return run
