"""A migrated database, of which each worker's test database is a copy.

It is made once for the same migrations and the same versions of Django, PostgreSQL and TimescaleDB.
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import django
import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

PROJECT = Path(__file__).parents[1]
_LOCK = 7_431_905  # of workers that start at the same time
_VERSIONS = """
SELECT version(), default_version FROM pg_available_extensions WHERE name = 'timescaledb'
"""
_COMPLETE = "SELECT datname FROM pg_database WHERE datname = %s AND NOT datallowconn"
# Tests roll back. Autovacuum would count no rows in tables that the next test fills, and the
# planner would join them by nested loops for minutes.
_TABLES = """
SELECT oid::regclass::text FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
AND relname NOT IN (SELECT hypertable_name FROM timescaledb_information.hypertables)
"""
_OTHERS = "SELECT datname FROM pg_database WHERE starts_with(datname, %s)"


def name_of_template():
    """Return the name of the database; make it, unless it is there."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as server:
        server.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
        prefix = f"test_{server.info.dbname}_template_"
        name = prefix + _digest(*server.execute(_VERSIONS).fetchone())
        if not server.execute(_COMPLETE, [name]).fetchone():
            for (other,) in server.execute(_OTHERS, [prefix]).fetchall():
                _run(server, "DROP DATABASE {} WITH (FORCE)", other)
            new = f"{prefix}new"
            _run(server, "CREATE DATABASE {}", new)
            _migrate(new)
            # No worker of TimescaleDB may connect while it is copied. Only a new name ends one.
            _run(server, "ALTER DATABASE {} ALLOW_CONNECTIONS false", new)
            _run(server, "ALTER DATABASE {} RENAME TO {}", new, name)
    return name


def _digest(*versions):
    digest = hashlib.sha256("\n".join((django.__version__, *versions)).encode())
    for path in (Path(__file__), *sorted(PROJECT.glob("ioportal/**/migrations/*.*"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _run(server, statement, *names):
    server.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


def _migrate(name):
    url = make_conninfo(os.environ["DATABASE_URL"], dbname=name)
    subprocess.run(
        [sys.executable, "manage.py", "migrate", "--skip-checks", "--verbosity=0"],
        cwd=PROJECT,
        env=os.environ | {"DATABASE_URL": url},
        check=True,
    )
    with psycopg.connect(url, autocommit=True) as database:
        for (table,) in database.execute(_TABLES).fetchall():
            database.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = false)")
