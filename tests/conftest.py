"""Fixtures: a registered site, ingested log files, management commands and shared folders."""

import fcntl
import io
import os
import time
from datetime import timedelta
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import hypothesis
import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.test import override_settings

from ioportal.jobs import tasks
from tests import contents, loading, properties, second_connection, template_database  # noqa: F401  (it registers the profiles)

pytest_plugins = ["tests.processes"]
hypothesis.settings.load_profile("quick")

REPOSITORY = Path(__file__).parents[1]

# Two clusters with different batch systems share a filesystem; one cluster has a second filesystem.
SITE = """
[[cluster]]
name = "anvil"
time_zone = "UTC"
batch = "slurm"
nodes = "n[1-20]"
[cluster.nid_rule]
network = "gni"
node = "n{number}"

[[cluster]]
name = "birch"
time_zone = "America/New_York"
batch = "pbs"
nodes = "b[1-9]"
[[cluster.nid]]
nid = "10.0.0.1@o2ib"
node = "b1"
[[cluster.nid]]
nid = "10.0.0.2@o2ib"
node = "b2"

[[filesystem]]
name = "lake"
clusters = ["anvil", "birch"]

[[filesystem]]
name = "pond"
clusters = ["birch"]

[[server]]
name = "mds1"
filesystem = "lake"
capacity_per_s = 5000
[[server.version]]
version = "2.12.5"
since = 2017-01-01

[[server]]
name = "mds2"
filesystem = "lake"

[[server]]
name = "oss1"
filesystem = "lake"
kind = "oss"

[[server]]
name = "pond-mds"
filesystem = "pond"

[[target]]
name = "lake-MDT0000"
filesystem = "lake"
server = "mds1"

[[target]]
name = "lake-OST0000"
filesystem = "lake"
server = "oss1"

[[target]]
name = "lake-OST0001"
filesystem = "lake"
server = "oss1"

[[target]]
name = "pond-MDT0000"
filesystem = "pond"
server = "pond-mds"
"""
SMALL_SITE = loading.RegisteredSite(SITE)


def pytest_itemcollected(item):
    """Undo the changes of each test that shares data by `module_db`, whatever else it names."""
    if "module_db" in item.fixturenames:
        item.add_marker(pytest.mark.django_db)


def pytest_collection_modifyitems(items):
    """Start long files first, so that no worker is left with one at the end.

    In a file, tests that share data come last: the others do not expect them.
    """
    long = {item.path for item in items if item.get_closest_marker("long")}
    items.sort(key=lambda item: (item.path not in long, "module_db" in item.fixturenames))


def broker_of_our_own():
    """Return the URL of a broker database that no other worker reads."""
    url = os.environ["IOPORTAL_BROKER_URL"]
    if urlsplit(url).scheme == "redis+socket":
        return f"{url}?virtual_host=9"
    return urlsplit(url)._replace(path="/9").geturl()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix):
    """Let Django copy a migrated database, rather than migrate one for each worker."""
    connection.settings_dict["TEST"]["TEMPLATE"] = template_database.name_of_template()


@pytest.fixture(scope="session", autouse=True)
def _statistics_at_once():
    """Recompute running jobs after every change."""
    with override_settings(STATISTICS_INTERVAL=timedelta(0)):
        yield


@pytest.fixture(autouse=True)
def _hypertables_are_emptied_too(request, django_db_blocker):
    """Empty hypertables after tests that commit; Django empties only the tables that it manages."""
    yield
    mark = request.node.get_closest_marker("django_db")
    if mark and mark.kwargs.get("transaction"):
        with django_db_blocker.unblock():
            contents.empty_hypertables()


@pytest.fixture
def logs(tmp_path):
    """Write a log file and return its path."""
    return partial(loading.write_log, tmp_path)


@pytest.fixture
def register(db, tmp_path):
    """Register a site from TOML."""
    return partial(loading.register, tmp_path)


@pytest.fixture
def site(db, tmp_path):
    """Register a small site: see `SITE`."""
    SMALL_SITE.register(tmp_path)


@pytest.fixture(scope="module")
def module_db(django_db_setup, django_db_blocker):
    """Keep data for all tests of a module, none of them transactional; remove it afterwards.

    Each test runs in a savepoint of one transaction, so now() in PostgreSQL is when that began.
    """
    with django_db_blocker.unblock(), transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.fixture(scope="module")
def module_logs(tmp_path_factory):
    """Write a log file for all tests of a module and return its path."""
    return partial(loading.write_log, tmp_path_factory.mktemp("logs"))


@pytest.fixture(scope="module")
def module_site(module_db, tmp_path_factory):
    """Register the small site of `site` once for all tests of a module."""
    SMALL_SITE.register(tmp_path_factory.mktemp("site"))


@pytest.fixture
def ingest(db):
    """Run ``manage.py ingest`` and return its counts."""
    return loading.ingest


@pytest.fixture
def call(db):
    """Run a management command and return its output."""

    def run(name, *arguments):
        out = io.StringIO()
        call_command(name, *map(str, arguments), stdout=out)
        return out.getvalue().strip()

    return run


@pytest.fixture
def full_disk(settings, tmp_path):
    """Require more free space than any disk of the database has."""
    settings.DATABASE_FOLDERS = [str(tmp_path)]
    settings.DATABASE_FREE_BYTES = 2**60


@pytest.fixture
def reconcile(call):
    """Run ``manage.py reconcile`` and return its output; differences raise an error."""
    return lambda: call("reconcile")


@pytest.fixture
def refresh(db):
    """Run the statistics stage like a worker."""
    return partial(loading.run_task, tasks.refresh_statistics)


@pytest.fixture
def evaluate(db):
    """Run all stages up to evaluation; return the current flags by rule and subject."""
    return loading.evaluate


@pytest.fixture
def queries(db):
    """Run a query and return its rows."""

    def run(query, *values):
        with connection.cursor() as cursor:
            cursor.execute(query, values)
            return cursor.fetchall()

    return run


@pytest.fixture
def environment(db):
    """Return environment variables for programs that use the test database."""
    database = second_connection.address()
    return {
        **os.environ,
        "DATABASE_URL": database,
        "IOPORTAL_BROKER_URL": broker_of_our_own(),
        "IOPORTAL_STATISTICS_INTERVAL": "0s",
        "PYTHONPATH": str(REPOSITORY),
    }


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory, request):
    """Write a folder once for all workers of a test run."""
    is_worker = hasattr(request.config, "workerinput")
    base = tmp_path_factory.getbasetemp()
    base = base.parent if is_worker else base

    def written(name, write):
        folder = base / name
        with (base / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.exists():
                unfinished = base / f"{name}.unfinished"
                unfinished.mkdir()
                write(unfinished)
                unfinished.rename(folder)
        return folder

    return written


@pytest.fixture(scope="session")
def eventually():
    """Wait until a condition is true."""

    def wait(condition, seconds=30):
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"not true within {seconds} s"
            time.sleep(0.02)

    return wait
