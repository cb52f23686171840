"""Write the tables and rows of this checkout's database as SQL, for the test of upgrades.

usage: python -m scripts.release_dump FILE.sql.gz

The statements depend on no version of TimescaleDB: they create its tables by function.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

from scripts.checkout import Problem, exit_status
from scripts.services.choice import choose
from scripts.services.daemons import DATABASE, ENVIRONMENT, HOME, ROLE

if TYPE_CHECKING:
    from collections.abc import Iterator

_SCHEMA = ("--no-owner", "--no-privileges", "--exclude-schema=*timescaledb*")
_LEFT_OUT = ("--", "\\", "CREATE TRIGGER ts_")
_HYPERTABLES = """
SELECT format('SELECT public.create_hypertable(%L, public.by_range(%L, %s), '
    'create_default_indexes => false)', 'public.' || hypertable_name, column_name,
    coalesce(format('INTERVAL %L', time_interval), integer_interval::text))
FROM timescaledb_information.dimensions WHERE dimension_number = 1 ORDER BY hypertable_name
"""
_TABLES = """
SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
WHERE nspname = 'public' AND relkind = 'r' ORDER BY relname
"""
_COLUMNS = """
SELECT attname FROM pg_attribute
WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
ORDER BY attnum
"""
_SEQUENCES = """
SELECT format('SELECT setval(%L, %s)', schemaname || '.' || sequencename, last_value)
FROM pg_sequences WHERE schemaname = 'public' AND last_value IS NOT NULL ORDER BY sequencename
"""


def write(path: Path) -> None:
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        parts = [
            _schema("pre-data"),
            *(f"{statement};" for (statement,) in connection.execute(_HYPERTABLES)),
            *_rows(connection),
            *(f"{statement};" for (statement,) in connection.execute(_SEQUENCES)),
            _schema("post-data"),
        ]
    # Without time and name in its header: the same rows are the same file.
    path.write_bytes(gzip.compress("\n".join(parts).encode(), mtime=0))


def _schema(section: str) -> str:
    """Return the statements of a section of pg_dump.

    Without comments, commands of psql, and triggers that TimescaleDB creates itself.
    """
    if (servers := choose().servers) is None:
        raise Problem("Needs PostgreSQL's programs on this machine, not only its address")
    programs = servers(HOME)
    command = (
        *(*programs.wrapper, f"{programs.postgres_folder}/pg_dump"),
        *(*_SCHEMA, f"--section={section}", "--host=/services/run"),
        *(f"--username={ROLE}", DATABASE),
    )
    dumped = subprocess.run(
        command, cwd=HOME, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    if dumped.returncode:
        raise Problem(f"pg_dump failed: {dumped.stderr}")
    lines = dumped.stdout.splitlines()
    return "\n".join(line for line in lines if line and not line.startswith(_LEFT_OUT))


def _rows(connection: psycopg.Connection) -> Iterator[str]:
    """Yield a statement for the rows of each table that has any."""
    for (table,) in connection.execute(_TABLES).fetchall():
        name = sql.Identifier("public", table)
        columns = [column for (column,) in connection.execute(_COLUMNS, [f'public."{table}"'])]
        names = sql.SQL(", ").join(map(sql.Identifier, columns))
        rows = connection.execute(sql.SQL("SELECT {} FROM {}").format(_as_text(columns), name))
        values = [sql.SQL("({})").format(sql.SQL(", ").join(map(sql.Literal, row))) for row in rows]
        if values:
            insert = sql.SQL("INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE VALUES\n{};")
            yield insert.format(name, names, sql.SQL(",\n").join(values)).as_string(connection)


def _as_text(columns: list[str]) -> sql.Composable:
    """Return columns as texts, from which PostgreSQL reads every type again."""
    return sql.SQL(", ").join(sql.SQL("{}::text").format(sql.Identifier(name)) for name in columns)


if __name__ == "__main__":
    match sys.argv[1:]:
        case [file]:
            sys.exit(exit_status(lambda: write(Path(file))))
        case _:
            sys.exit(__doc__)
