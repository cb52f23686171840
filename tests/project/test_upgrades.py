"""Databases of earlier releases are upgraded with their data; landed migrations never change."""

import gzip
import hashlib
import io
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import psycopg
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError, SystemCheckError
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from psycopg import sql
from psycopg.conninfo import make_conninfo

from ioportal.core.postgres import earlier

PROJECT = Path(__file__).parents[2]
RELEASES = sorted(Path(__file__).with_name("releases").glob("*.sql.gz"))
LANDED = Path(__file__).with_name("landed_migrations.txt")

# The commands of an upgrade, in one process.
UPGRADE = """
import django
django.setup()
from django.core.management import call_command
from django.core.management.base import CommandError, SystemCheckError
try:
    call_command("migrate", skip_checks=False)
except SystemCheckError as refused:
    print(refused)
call_command("carry_over")
try:
    call_command("carry_over")
except CommandError as refused:
    print(refused)
call_command("migrate", skip_checks=False, verbosity=0)
call_command("reconcile")
"""
JOBS = """
SELECT batch_id, owner, s.metadata_operations, s.opens, s.read_bytes, s.quality
FROM jobs_job j JOIN jobs_jobstatistics s ON s.job_id = j.id ORDER BY batch_id
"""
# What the tables have. Names that Django and PostgreSQL choose depend on the history, and casts of
# texts on dumps.
PARTS = r"""
SELECT name, regexp_replace(part, '::(character varying|text)(\[\])?|[()]', '', 'g') FROM (
SELECT relname AS name, concat_ws(' ', attname, format_type(atttypid, atttypmod), attnotnull,
    attidentity, attgenerated, pg_get_expr(adbin, adrelid)) AS part
FROM pg_attribute
JOIN pg_class c ON c.oid = attrelid AND relnamespace = 'public'::regnamespace
LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE relkind IN ('r', 'v') AND attnum > 0 AND NOT attisdropped
UNION ALL
SELECT relname, pg_get_constraintdef(k.oid) FROM pg_constraint k
JOIN pg_class c ON c.oid = conrelid AND relnamespace = 'public'::regnamespace
UNION ALL
SELECT relname, regexp_replace(pg_get_indexdef(indexrelid), 'INDEX \S+ ON', 'INDEX ON')
FROM pg_index JOIN pg_class c ON c.oid = indrelid AND relnamespace = 'public'::regnamespace
UNION ALL
SELECT relname, pg_get_viewdef(oid) FROM pg_class
WHERE relkind = 'v' AND relnamespace = 'public'::regnamespace
UNION ALL
SELECT relname, 'sequence' FROM pg_class
WHERE relkind = 'S' AND relnamespace = 'public'::regnamespace
UNION ALL
SELECT hypertable_name, concat_ws(' ', column_name, time_interval)
FROM timescaledb_information.dimensions
UNION ALL
SELECT proname, prosrc FROM pg_proc WHERE starts_with(proname, 'jobs_')
UNION ALL
SELECT app_label, concat_ws(' ', model, codename)
FROM auth_permission JOIN django_content_type t ON t.id = content_type_id
UNION ALL
SELECT app, name FROM django_migrations
) parts
"""
FLAGS = "SELECT rule, subject, value, case_id FROM findings_flag ORDER BY id"


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


@pytest.mark.long
@pytest.mark.parametrize("restored", RELEASES, indirect=True, ids=lambda path: path.name)
def test_a_database_of_an_earlier_release_is_upgraded_with_its_data(restored, queries):
    with psycopg.connect(restored) as database:
        before = database.execute(JOBS).fetchall()
        flags = database.execute(FLAGS.replace("findings", "flags")).fetchall()

    output = subprocess.run(
        [sys.executable, "-c", UPGRADE],
        cwd=PROJECT,
        env=os.environ | {"DATABASE_URL": restored, "DJANGO_SETTINGS_MODULE": "ioportal.settings"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert "The database is from 0.1.0, whose tables have other names." in output
    assert "Stop the portal, back the database up, and run “manage.py carry_over”." in output
    assert "Carried over from 0.1.0. Now run “manage.py migrate”." in output
    assert "The tables have the names of this version" in output
    assert "19 segments reconcile." in output
    with psycopg.connect(restored) as database:
        assert database.execute(JOBS).fetchall() == before
        assert database.execute(FLAGS).fetchall() == flags
        parts = Counter(database.execute(PARTS).fetchall())
    assert ("80", "carol", 900_020, 900_000, None, "poor") in before
    assert len(flags) == 3
    assert parts == Counter(queries(PARTS))


def test_a_database_of_before_that_release_is_refused(db, call):
    recorder = MigrationRecorder(connection)
    recorder.record_applied("flags", "0001_initial")

    [refused] = earlier.check(connection)
    assert (
        refused.msg == "The database is from a version before 0.1.0, whose tables have other names."
    )
    with pytest.raises(CommandError, match=r"Run the migrations of 0\.1\.0, with its program"):
        call("carry_over")


def test_landed_migrations_are_unchanged():
    landed = dict(line.split()[::-1] for line in LANDED.read_text().splitlines())
    files = {
        str(path.relative_to(PROJECT)): hashlib.sha256(path.read_bytes()).hexdigest()
        for pattern in ("[0-9]*.py", "*.sql")
        for path in PROJECT.glob(f"ioportal/**/migrations/{pattern}")
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
        "mitigation_recent of table changes_mitigation."
    ) in str(refused.value)
