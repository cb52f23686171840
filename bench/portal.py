"""A portal to measure: a database of its own with a registered site and its jobs."""

from __future__ import annotations

import io
import os
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.core.management import call_command
from django.db import connection
from psycopg.conninfo import make_conninfo

from bench.figures import say
from bench.inputs import TRACE_DAY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

NODES = 20_000
NODES_PER_JOB = 10
CLUSTER, SERVER = "bench", "bench-mds"
_DATABASE = "ioportal_bench"

_SITE = f"""
[[cluster]]
name = "{CLUSTER}"
time_zone = "UTC"
batch = "slurm"
nodes = "nid[00000-{NODES - 1:05d}]"
nid_rule = {{ network = "gni", node = "nid{{number:05d}}" }}

[[filesystem]]
name = "atlas2"
clusters = ["{CLUSTER}"]

[[server]]
name = "{SERVER}"
filesystem = "atlas2"

[[target]]
name = "atlas2-MDT0000"
filesystem = "atlas2"
server = "{SERVER}"
"""
_SACCT_HEADER = (
    "JobID|JobIDRaw|Cluster|User|Account|Partition|State|Submit|Start|End|NNodes|NodeList"
)
_FIRST_NODE_JOB = 1_000_000


@contextmanager
def database() -> Iterator[None]:
    """Have a database with a registered site."""
    with empty_database(_DATABASE):
        register(_SITE)
        yield


@contextmanager
def empty_database(name: str) -> Iterator[None]:
    """Create and migrate a database, and drop it at the end."""
    before = connection.settings_dict["NAME"]
    connection.settings_dict["TEST"]["NAME"] = name
    say(f"creating the database {name}")
    connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    try:
        yield
    finally:
        connection.creation.destroy_test_db(before, verbosity=0)


def register(site: str) -> None:
    """Register what a TOML text says."""
    _load("register", text=site)


def database_url() -> str:
    """Return the address of the database, for another process."""
    return make_conninfo(os.environ["DATABASE_URL"], dbname=_DATABASE)


def run_jobs_on_all_nodes() -> None:
    """Have jobs of `NODES_PER_JOB` nodes hold all nodes while the traces were written."""
    record_jobs(
        (_FIRST_NODE_JOB + n, f"nid[{first:05d}-{first + NODES_PER_JOB - 1:05d}]", NODES_PER_JOB)
        for n, first in enumerate(range(0, NODES, NODES_PER_JOB))
    )


def record_jobs(jobs: Iterable[tuple[int, str, int]]) -> None:
    """Load the accounting of jobs (id, host list, number of nodes) that ran on the trace's day."""
    facts = f"{CLUSTER}|alice|phy12|batch|COMPLETED"
    times = "|".join(f"{TRACE_DAY}T{time}" for time in ("12:00:00", "13:00:00", "20:00:00"))
    rows = [f"{job}|{job}|{facts}|{times}|{count}|{nodes}" for job, nodes, count in jobs]
    say(f"recording {len(rows):,} jobs")
    _load("ingest", "sacct", "--cluster", CLUSTER, text="\n".join([_SACCT_HEADER, *rows, ""]))


def ingest(*arguments: str) -> None:
    """Run `manage.py ingest` in this process."""
    call_command("ingest", *arguments, stdout=io.StringIO(), stderr=io.StringIO())


def forget_traces() -> None:
    """Drop what was loaded of traces and charged, as if they had never been seen."""
    with connection.cursor() as cursor:
        cursor.execute(
            "TRUNCATE telemetry_rpcwindow, telemetry_chargedrpc, telemetry_coverage, "
            "ingest_touchedtrace, jobs_stalestatistics"
        )
        cursor.execute("DELETE FROM ingest_segment WHERE format = 'rpctrace'")


def settle() -> None:
    """Give the planner statistics, as a database has that was not made a minute ago."""
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def _load(command: str, *arguments: str, text: str) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(text)
        file.flush()
        call_command(command, *arguments, file.name, stdout=io.StringIO(), stderr=io.StringIO())
