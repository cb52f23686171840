"""A portal to measure: a database of its own with a registered site and its jobs."""

from __future__ import annotations

import io
import os
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic, sleep, time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management import call_command
from django.db import connection
from psycopg.conninfo import make_conninfo

from bench.figures import say
from bench.inputs import TRACE_DAY
from scripts import serve

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

NODES = 20_000
NODES_PER_JOB = 10
CLUSTER, SERVER, SOURCE = "bench", "bench-mds", "bench-trace"
_DATABASE = "ioportal_bench"
_HOST = "127.0.0.1"
_STARTS_WITHIN_S = 60

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

[[source]]
name = "{SOURCE}"
format = "rpctrace"
server = "{SERVER}"
"""
# A filesystem of two metadata servers, for rows that are made by SQL.
TWO_SERVERS = """
[[cluster]]
name = "c1"
time_zone = "UTC"
batch = "slurm"

[[filesystem]]
name = "lake"
clusters = ["c1"]

[[server]]
name = "mds1"
filesystem = "lake"

[[server]]
name = "mds2"
filesystem = "lake"

[[target]]
name = "lake-MDT0000"
filesystem = "lake"
server = "mds1"

[[target]]
name = "lake-MDT0001"
filesystem = "lake"
server = "mds2"
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


@contextmanager
def served() -> Iterator[str]:
    """Run the web server, with one worker; provide its address."""
    with socket.create_server((_HOST, 0)) as probe:
        port = probe.getsockname()[1]
    say(f"starting the web server on port {port}")
    granian = [sys.executable, "-m", "granian", "--interface", "asginl", "--log-level", "error"]
    with subprocess.Popen(
        [*granian, "--host", _HOST, "--port", str(port), "ioportal.asgi:application"],
        cwd=settings.BASE_DIR,
        env=os.environ | {"DATABASE_URL": database_url()},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as server:
        try:
            _wait_until_it_answers(port)
            yield f"http://{_HOST}:{port}"
        finally:
            server.terminate()


@contextmanager
def served_whole() -> Iterator[str]:
    """Run all programs of a portal, as `make serve` does; provide its address."""
    with socket.create_server((_HOST, 0)) as probe:
        port = probe.getsockname()[1]
    say(f"starting a portal on port {port}")
    environment = os.environ | {"DATABASE_URL": database_url(), "IOPORTAL_BROKER_URL": _broker()}
    with ExitStack() as entered:
        folder = Path(entered.enter_context(tempfile.TemporaryDirectory()))
        log = entered.enter_context((folder / "log").open("w"))
        for program in serve.commands(port, folder).values():
            process = subprocess.Popen(
                program,
                cwd=settings.BASE_DIR,
                env=environment,
                stdout=log,
                stderr=log,
            )
            entered.callback(process.wait)
            entered.callback(process.terminate)
        _wait_until_it_answers(port)
        yield f"http://{_HOST}:{port}"


def _broker() -> str:
    """Return the broker, in a database of its own."""
    url = os.environ["BENCH_BROKER_URL"]
    if urlsplit(url).scheme == "redis+socket":
        return f"{url}?virtual_host=8"
    return urlsplit(url)._replace(path="/8").geturl()


def _wait_until_it_answers(port: int) -> None:
    until = monotonic() + _STARTS_WITHIN_S
    while True:
        try:
            socket.create_connection((_HOST, port)).close()
        except OSError:
            if monotonic() > until:
                raise
            sleep(0.1)
        else:
            return


def token() -> str:
    """Return the secret of a new token to send batches."""
    out = io.StringIO()
    call_command("token", "create", "ingest", "--source", SOURCE, stdout=out, stderr=io.StringIO())
    return out.getvalue().strip()


def run_jobs_on_all_nodes() -> None:
    """Have jobs of `NODES_PER_JOB` nodes hold all nodes while the traces were written."""
    record_jobs(
        (_FIRST_NODE_JOB + n, f"nid[{first:05d}-{first + NODES_PER_JOB - 1:05d}]", NODES_PER_JOB)
        for n, first in enumerate(range(0, NODES, NODES_PER_JOB))
    )


def run_jobs_now() -> None:
    """Have jobs of `NODES_PER_JOB` nodes run on all nodes."""
    begun = int(time()) - 3_600
    header = "JobID|User|Account|Partition|State|Submit|Start|End|NNodes|NodeList"
    rows = [
        f"{_FIRST_NODE_JOB + n}|alice|phy12|batch|RUNNING|{begun}|{begun}|Unknown|{NODES_PER_JOB}|"
        f"nid[{first:05d}-{first + NODES_PER_JOB - 1:05d}]"
        for n, first in enumerate(range(0, NODES, NODES_PER_JOB))
    ]
    say(f"running {len(rows):,} jobs")
    _load("ingest", "sacct", "--cluster", CLUSTER, text="\n".join([header, *rows, ""]))


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
            "ingest_touchedtrace, ingest_batch, jobs_stalestatistics"
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
