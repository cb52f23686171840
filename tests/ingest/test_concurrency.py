"""Concurrent loads and workers, each with its own connection."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier, Event
from time import sleep

import pytest
from django.core.management import CommandError
from django.db import connection

from ioportal.core.postgres.advisory_locks import Lock
from ioportal.ingest import attribution_stage, tasks
from ioportal.jobs import tasks as statistics
from ioportal.site.models import Filesystem, Target
from ioportal.telemetry import rollups
from ioportal.telemetry.stage_runs import drain
from tests import contents, second_connection
from tests.loading import register, run_task
from tests.logs import Run, alps, at, job_stats, pbs, rpc, sacct, starting

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("site")]


@pytest.fixture
def in_parallel():
    """Run functions in parallel, each in a thread with its own connection."""

    def run(*functions):
        barrier = Barrier(len(functions))

        def call(function):
            try:
                barrier.wait(timeout=30)
                return function()
            finally:
                connection.close()

        with ThreadPoolExecutor(len(functions)) as threads:
            futures = [threads.submit(call, function) for function in functions]
            return [future.result(timeout=120) for future in futures]

    return run


@pytest.fixture
def files(logs):
    """Write files that share new names, jobs and nodes; return the arguments of `ingest`."""
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


@pytest.mark.long
def test_concurrent_loads_give_the_same_tables_as_sequential_loads(
    files, ingest, in_parallel, reconcile
):
    def load(file):
        form, path, options = file
        return lambda: ingest(form, path, **options)

    # Load every file twice while two workers run.
    in_parallel(
        *map(load, files),
        *map(load, reversed(files)),
        tasks.attribute_pending,
        statistics.refresh_statistics,
        tasks.attribute_pending,
        statistics.refresh_statistics,
    )
    run_task(tasks.attribute_pending)
    statistics.refresh_statistics()
    assert reconcile() == f"{len(files)} segments reconcile."
    tables = contents.everything()

    contents.forget()
    for file in files:
        load(file)()
    statistics.refresh_statistics()
    assert tables == contents.everything()


def test_concurrent_loads_of_a_file_store_it_once(logs, ingest, in_parallel, queries, reconcile):
    path = logs("t", "\n".join(rpc(f"12:00:{second:02}") for second in range(60)))

    accounts = in_parallel(*[lambda: ingest("rpctrace", path, server="mds1")] * 5)

    assert {account["operations"] for account in accounts} == {60}
    assert queries("SELECT sum(count) FROM telemetry_rpcwindow") == [(60,)]
    assert queries("SELECT count(*) FROM ingest_segment") == [(1,)]
    assert reconcile()


def test_one_of_two_concurrent_overlapping_traces_is_refused(logs, ingest, in_parallel, queries):
    def attempt(path):
        def load():
            try:
                return ingest("rpctrace", path, server="mds1")["operations"]
            except CommandError as error:
                return str(error)

        return load

    first = logs("first", rpc("12:00"), rpc("12:02"))
    second = logs("second", rpc("12:01"), rpc("12:03"), rpc("12:04"))

    results = in_parallel(attempt(first), attempt(second))

    [loaded] = [result for result in results if isinstance(result, int)]
    [refusal] = [result for result in results if isinstance(result, str)]
    assert " overlaps " in refusal
    assert queries("SELECT sum(count) FROM telemetry_rpcwindow") == [(loaded,)]


def test_stages_that_run_during_a_reconciliation_are_no_differences(
    logs, ingest, in_parallel, reconcile
):
    ingest("rpctrace", logs("first", rpc("12:00"), rpc("12:20")), server="mds1")
    loads = [("rpctrace", logs("second", rpc("12:10")))]

    def load_meanwhile(execute, statement, *others):
        result = execute(statement, *others)
        words = repr(statement)
        if loads and "telemetry_attributedrpc" in words and "coalesce(sum(" in words:  # re-added
            second = loads.pop()
            in_parallel(lambda: (ingest(*second, server="mds2"), drain(rollups.roll_up)))
        return result

    with connection.execute_wrapper(load_meanwhile):
        assert reconcile() == "1 segments reconcile."
    assert not loads
    assert reconcile() == "2 segments reconcile."


@pytest.fixture
def two_filesystems(logs, ingest):
    """Load reads of two filesystems that await attribution; return the primary keys of both."""
    for target in ("lake-MDT0000", "pond-MDT0000"):
        for minute in (1, 5):
            read = job_stats(target, {"701": {"open": minute}}, snapshot=f"12:{minute:02}")
            ingest(
                "job_stats", logs(f"{target}{minute}", read), at=at(f"12:{minute:02}").isoformat()
            )
    attribution_stage.mark_all_dirty()
    return [Filesystem.objects.get(name=name).pk for name in ("lake", "pond")]


@pytest.fixture
def other_worker():
    """Yield the connection of another worker, in a transaction."""
    with second_connection.connect() as worker:
        yield worker


def test_workers_attribute_different_filesystems(two_filesystems, other_worker):
    lake, _ = two_filesystems
    other_worker.execute("SELECT pg_advisory_xact_lock_shared(%s)", [Lock.ATTRIBUTION])
    other_worker.execute("SELECT pg_advisory_xact_lock(%s, %s)", [Lock.ATTRIBUTION, lake])

    run_task(tasks.attribute_pending)
    assert attribution_stage.pending_filesystems() == [lake]

    other_worker.rollback()
    run_task(tasks.attribute_pending)
    assert attribution_stage.pending_filesystems() == []


def test_a_change_of_jobs_or_of_the_site_excludes_all_workers(two_filesystems, other_worker):
    other_worker.execute("SELECT pg_advisory_xact_lock(%s)", [Lock.ATTRIBUTION])

    run_task(tasks.attribute_pending)

    assert sorted(attribution_stage.pending_filesystems()) == sorted(two_filesystems)


_IS_WAITING = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)"


def test_a_registration_locks_targets_in_the_order_of_loads(in_parallel, other_worker, tmp_path):
    """Of a load and a registration that each lock a target of the other, one is ended."""
    first, *_, last = Target.objects.order_by("pk")
    text = "".join(
        f'[[target]]\nname = "{target.name}"\nfilesystem = "{target.filesystem}"\n'
        for target in (last, first)
    )
    is_locked = Event()

    def load():
        lock = "SELECT FROM site_target WHERE id = %s FOR UPDATE"
        other_worker.execute(lock, [first.pk])
        is_locked.set()
        for _ in range(3_000):
            if other_worker.execute(_IS_WAITING).fetchone()[0]:
                break
            sleep(0.01)
        other_worker.execute(lock, [last.pk])
        other_worker.rollback()

    def registration():
        is_locked.wait()
        register(tmp_path, text)

    in_parallel(load, registration)


def test_loads_register_the_same_targets_in_any_order(logs, ingest, in_parallel):
    names = [f"lake-OST{number:04x}" for number in range(0x100, 0x130)]
    reads = [
        (number, logs(str(number), *(job_stats(name, {}) for name in order)))
        for number, order in enumerate((names, names[::-1], names[24:] + names[:24]))
    ]

    def load(number, read):
        moment = at(f"12:0{number}").isoformat()
        return partial(ingest, "job_stats", read, at=moment, **{"register-targets": True})

    in_parallel(*(load(*each) for each in reads))

    assert Target.objects.filter(name__in=names).count() == len(names)
