"""Several loads and several workers at once, each on a connection of its own."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.core.management import CommandError
from django.db import connection

from ioportal.ingest import tasks
from ioportal.jobs import tasks as statistics
from tests import contents
from tests.logs import Run, alps, at, job_stats, pbs, rpc, sacct, starting

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("site")]


@pytest.fixture
def at_once():
    """Run some things at the same time, each in a thread with a connection of its own."""

    def run(*things):
        barrier = Barrier(len(things))

        def one(thing):
            try:
                barrier.wait(timeout=30)
                return thing()
            finally:
                connection.close()

        with ThreadPoolExecutor(len(things)) as threads:
            started = [threads.submit(one, thing) for thing in things]
            return [thing.result(timeout=120) for thing in started]

    return run


@pytest.fixture
def texts(logs):
    """How to load each of some texts that meet each other's new names, jobs and nodes."""
    jobs = [Run(str(700 + n), nodes=f"n[{n}-{n + 1}]", node_count=2) for n in range(1, 9)]
    trace = {
        server: logs(
            server,
            "\n".join(
                rpc(
                    f"12:{minute:02}:{second:02}",
                    f"{1 + (minute * step + second) % 12}@gni",
                    job=job,
                )
                for minute in range(0, 20, 4)
                for second in range(0, 60, 9)
                for job in ("", f"{701 + (minute + second * step) % 9}", f"ls.{minute}")
            ),
        )
        for server, step in (("mds1", 1), ("mds2", 7))
    }
    return [
        *(("rpctrace", path, {"server": server}) for server, path in trace.items()),
        *(
            (
                "job_stats",
                logs(
                    f"j{minute}",
                    job_stats(
                        "lake-MDT0000",
                        {str(700 + n): {"open": n * minute} for n in order},
                        snapshot=f"12:{minute:02}",
                    ),
                ),
                {"at": at(f"12:{minute:02}").isoformat()},
            )
            for minute, order in ((1, range(1, 6)), (5, range(9, 0, -1)), (9, range(3, 12)))
        ),
        ("sacct", logs("s1", sacct(*(job.running() for job in jobs))), {"cluster": "anvil"}),
        ("sacct", logs("s2", sacct(*reversed(jobs))), {"cluster": "anvil"}),
        ("pbs", logs("p", pbs(("E", Run("815", nodes="b1,b2")))), {"cluster": "birch"}),
        ("alps", logs("a", alps(starting(9, "815", "12:01", "2-9", 8))), {"cluster": "birch"}),
    ]


def test_loads_and_workers_at_once_end_as_loads_one_after_the_other(
    texts, ingest, at_once, reconcile
):
    def load(text):
        form, path, options = text
        return lambda: ingest(form, path, **options)

    # Everything twice, beside two workers.
    at_once(
        *map(load, texts),
        *map(load, reversed(texts)),
        tasks.attribute_pending,
        statistics.refresh_statistics,
        tasks.attribute_pending,
        statistics.refresh_statistics,
    )
    tasks.attribute_pending()
    statistics.refresh_statistics()
    assert reconcile() == f"{len(texts)} segments reconcile."
    found = contents.everything()

    contents.forget()
    for text in texts:
        load(text)()
    statistics.refresh_statistics()
    assert found == contents.everything()


def test_of_many_loads_of_one_text_one_stores_it(logs, ingest, at_once, queries, reconcile):
    path = logs("t", "\n".join(rpc(f"12:00:{second:02}") for second in range(60)))

    accounts = at_once(*[lambda: ingest("rpctrace", path, server="mds1")] * 5)

    assert {account["operations"] for account in accounts} == {60}
    assert queries("SELECT sum(count) FROM telemetry_rpcwindow") == [(60,)]
    assert queries("SELECT count(*) FROM ingest_segment") == [(1,)]
    assert reconcile()


def test_of_two_overlapping_traces_at_once_one_is_refused(logs, ingest, at_once, queries):
    def attempt(path):
        def load():
            try:
                return ingest("rpctrace", path, server="mds1")["operations"]
            except CommandError as refusal:
                return str(refusal)

        return load

    one = logs("one", rpc("12:00"), rpc("12:02"))
    two = logs("two", rpc("12:01"), rpc("12:03"), rpc("12:04"))

    results = at_once(attempt(one), attempt(two))

    [loaded] = [result for result in results if isinstance(result, int)]
    [refusal] = [result for result in results if isinstance(result, str)]
    assert " overlaps " in refusal
    assert queries("SELECT sum(count) FROM telemetry_rpcwindow") == [(loaded,)]
