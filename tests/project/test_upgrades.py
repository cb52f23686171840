"""Databases of earlier releases are upgraded with their data; landed migrations never change."""

import gzip
import hashlib
import io
import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import connection
from psycopg import sql
from psycopg.conninfo import make_conninfo

PROJECT = Path(__file__).parents[2]
RELEASES = sorted(Path(__file__).with_name("releases").glob("*.sql.gz"))
LANDED = Path(__file__).with_name("landed_migrations.txt")

# The commands of an upgrade, in one process.
UPGRADE = """
import django
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
call_command("check", databases=["default"])
call_command("reconcile")
"""
JOBS = """
SELECT batch_id, owner, s.metadata_operations, s.opens, s.read_bytes, s.quality
FROM jobs_job j JOIN jobs_jobstatistics s ON s.job_id = j.id ORDER BY batch_id
"""


@pytest.fixture
def restored(request, django_db_setup):
    """Restore the dump of a release; return the address of its database."""
    server = os.environ["DATABASE_URL"]
    name = sql.Identifier(f"{connection.settings_dict['NAME']}_upgrade")
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(name))
        url = make_conninfo(server, dbname=f"{connection.settings_dict['NAME']}_upgrade")
        try:
            with psycopg.connect(url) as database:
                database.execute(gzip.decompress(request.param.read_bytes()))
            yield url
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


@pytest.mark.parametrize("restored", RELEASES, indirect=True, ids=lambda path: path.name)
def test_a_database_of_an_earlier_release_is_upgraded_with_its_data(restored):
    with psycopg.connect(restored) as database:
        before = database.execute(JOBS).fetchall()

    output = subprocess.run(
        [sys.executable, "-c", UPGRADE],
        cwd=PROJECT,
        env=os.environ | {"DATABASE_URL": restored, "DJANGO_SETTINGS_MODULE": "ioportal.settings"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert "19 segments reconcile." in output
    with psycopg.connect(restored) as database:
        assert database.execute(JOBS).fetchall() == before
    assert ("80", "carol", 900_020, 900_000, None, "poor") in before


def test_landed_migrations_are_unchanged():
    landed = dict(line.split()[::-1] for line in LANDED.read_text().splitlines())
    files = {
        str(path.relative_to(PROJECT)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in PROJECT.glob("ioportal/**/migrations/[0-9]*.py")
    }

    changed = {path for path, digest in landed.items() if files.get(path) != digest}
    assert not changed, "Landed migrations changed: restore them, and add new ones instead"
    missing = files.keys() - landed.keys()
    assert not missing, f"Add them: sha256sum {' '.join(sorted(missing))} >> {LANDED}"


@pytest.mark.django_db
def test_a_column_missing_from_a_migrated_database_is_named():
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE jobs_job DROP COLUMN queue CASCADE")
        cursor.execute("DROP INDEX mitigation_recent")
        cursor.execute("DROP TABLE telemetry_rpcminute")

    with pytest.raises(SystemCheckError) as refused:
        call_command("migrate", check_unapplied=True, skip_checks=False, stdout=io.StringIO())

    assert (
        "Missing in 'default': table telemetry_rpcminute, column queue of table jobs_job, index "
        "job_recent of table jobs_job, index job_queue_recent of table jobs_job, index "
        "mitigation_recent of table studies_mitigation."
    ) in str(refused.value)
