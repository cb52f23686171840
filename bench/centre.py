"""A centre with a year of jobs, put into a database of its own by SQL alone."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from django.contrib.auth.models import Group, User
from django.db import connection
from psycopg import sql

from bench import portal
from bench.figures import say

if TYPE_CHECKING:
    from collections.abc import Iterator

BEGAN, ENDED = "2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"
STAFF, HEAVY_USER, OTHER_USER = "admin", "u1", "u40q2"
_DATABASE = "ioportal_bench_pages"
_SITE = "\n".join(
    [
        *(
            f'[[cluster]]\nname = "c{n}"\ntime_zone = "UTC"\nbatch = "slurm"\n'
            f'nodes = "c{n}-node[1-400]"'
            for n in (1, 2, 3)
        ),
        '[[filesystem]]\nname = "lake"\nclusters = ["c1", "c2", "c3"]',
        *(f'[[server]]\nname = "mds{n}"\nfilesystem = "lake"' for n in range(4)),
        *(
            f'[[target]]\nname = "lake-MDT000{n}"\nfilesystem = "lake"\nserver = "mds{n}"'
            for n in range(4)
        ),
    ]
)
_STATEMENTS = Path(__file__).with_name("centre.sql")
_LARGE = ["jobs_job", "jobs_jobstatistics", "jobs_allocation"]
_INDEXES = """
SELECT i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid)
FROM pg_index i LEFT JOIN pg_constraint c ON c.conindid = i.indexrelid
WHERE i.indrelid = ANY(%s::regclass[]) AND c.oid IS NULL
"""


@contextmanager
def filled(jobs: int, began: str = BEGAN) -> Iterator[None]:
    """Have a database with so many jobs, and three people who look at them."""
    with portal.empty_database(_DATABASE):
        _fill(jobs, began)
        yield


def _fill(jobs: int, began: str) -> None:
    say(f"filling the database with {jobs:,} jobs")
    portal.register(_SITE)
    with connection.cursor() as cursor:
        with without_indexes(_LARGE):
            cursor.execute(_STATEMENTS.read_text(), {"jobs": jobs, "began": began, "ended": ENDED})
        cursor.execute("VACUUM ANALYZE")
    User.objects.create_user(STAFF, is_staff=True)
    User.objects.create_user(HEAVY_USER)
    User.objects.create_user(OTHER_USER).groups.add(Group.objects.create(name="prj7"))
    say("filled")


@contextmanager
def without_indexes(tables: list[str]) -> Iterator[None]:
    """Drop the indexes of some tables, and make them anew at the end: that is quicker."""
    with connection.cursor() as cursor:
        cursor.execute(_INDEXES, [tables])
        indexes = cursor.fetchall()
        for name, _ in indexes:
            cursor.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(name)))
        yield
        for _, definition in indexes:
            cursor.execute(definition)
