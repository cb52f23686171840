"""Repetition and order of loading do not change the stored rows."""

import gzip
import random
from functools import partial
from itertools import permutations

import pytest
from django.core.management import CommandError
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ioportal.ingest import attribution_stage, tasks
from tests import contents
from tests.loading import run_task
from tests.logs import (
    Run,
    alps,
    at,
    finishing,
    job_stats,
    md_stats,
    panda,
    panda_job,
    pbs,
    rpc,
    sacct,
    starting,
)
from tests.properties import examples

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("site")]

FIRST = "\n".join(rpc(f"12:00:{second:02}", "1@gni", xid=second) for second in range(0, 40, 5))
# Two dump processes: the second file starts with the last records of the first file.
SECOND = "\n".join(rpc(f"12:00:{second:02}", "1@gni", xid=second) for second in range(20, 60, 5))


@pytest.fixture
def day(logs):
    """Write one day's files of all formats; return the arguments of `ingest` by name."""
    running, ended = Run("77", nodes="n[1-2]", node_count=2).running(), Run("78", nodes="n2")
    batch = Run("815", nodes="b1")
    return {
        "first trace": ("rpctrace", logs("t1", FIRST), {"server": "mds1"}),
        "second trace": (
            "rpctrace",
            logs("t2", rpc("12:30", "2@gni"), rpc("12:31", "9@gni", job="815"), "noise"),
            {"server": "mds1"},
        ),
        "trace of another server": (
            "rpctrace",
            logs("t3", rpc("12:30", "1@gni")),
            {"server": "mds2"},
        ),
        **{
            f"read {clock}": (
                "job_stats",
                logs(f"j{clock}", job_stats("lake-MDT0000", entries, snapshot=clock)),
                {"at": at(clock).isoformat()},
            )
            for clock, entries in {
                "12:00": {"77": {"open": 5}, "cp.0": {"open": 1}},
                "12:10": {"77": {"open": 9}, "815": {"open": 3}},
                "12:20": {"77": {"open": 2}, "815": {"open": 4}},
            }.items()
        },
        "totals": (
            "md_stats",
            logs("md", md_stats("lake-MDT0000", {"open": 12})),
            {"at": "2017-07-05T12:10:00Z"},
        ),
        "jobs, running": ("sacct", logs("s1", sacct(running)), {"cluster": "anvil"}),
        "jobs, ended": (
            "sacct",
            logs("s2", sacct(Run("77", nodes="n1", end="12:25"), ended)),
            {"cluster": "anvil"},
        ),
        "batch": ("pbs", logs("p", pbs(("S", batch), ("E", batch))), {"cluster": "birch"}),
        "launches": (
            "alps",
            logs("a", alps(starting(9, "815", "12:01", "2", 1), finishing(9, "815", "12:50"))),
            {"cluster": "birch"},
        ),
        "PanDA, running": (
            "panda",
            logs("w1", panda(panda_job(1, end=None), panda_job(2, "78"), panda_job(3, "79"))),
            {"cluster": "anvil"},
        ),
        "PanDA, ended": (
            "panda",
            logs(
                "w2", panda(panda_job(1), panda_job(2, "77", modificationtime=None), {"pandaid": 4})
            ),
            {"cluster": "anvil"},
        ),
    }


@pytest.fixture
def load(day, ingest):
    def run(name):
        form, path, options = day[name]
        return ingest(form, path, **options)

    return run


@pytest.fixture
def tables_after(refresh):
    """Run steps and all stages, return the resulting tables, and roll back."""

    def run(*steps):
        with transaction.atomic():
            for step in steps:
                step()
            run_task(tasks.attribute_pending)
            refresh()
            tables = contents.everything()
            transaction.set_rollback(True)
        return tables

    return run


@pytest.fixture
def expected_tables(day, load, tables_after):
    """Return the tables after loading all files in order."""
    return tables_after(*(partial(load, name) for name in day))


def test_reloading_a_file_changes_nothing(day, load):
    first = {name: load(name) for name in day}
    before = contents.everything()

    again = {name: load(name) for name in day}

    assert contents.everything() == before
    for name, account in first.items():
        lines = ("lines", "accepted", "rejected", "irrelevant", "operations")
        assert [account[key] for key in lines] == [again[name][key] for key in lines]


def test_the_order_of_loading_does_not_change_the_tables(
    day, load, tables_after, expected_tables, reconcile
):
    names = list(day)
    shuffler = random.Random(2017)  # noqa: S311  (an order, not a secret)
    for _ in range(4):
        order = shuffler.sample(names * 2, k=2 * len(names))

        tables = tables_after(*(partial(load, name) for name in order), reconcile)

        assert tables == expected_tables, order


@settings(
    max_examples=examples(12),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_interleaved_stages_do_not_change_the_tables(
    day, load, tables_after, expected_tables, refresh, data
):
    """Stages run at random points between the loads."""
    names = list(day)
    order = data.draw(st.permutations(names))
    attributed_after = data.draw(st.sets(st.sampled_from(names)))
    limit = data.draw(st.integers(1, 4))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ioportal.ingest.management.commands.ingest.drain", lambda _stage: None)

        def step(name):
            load(name)
            if name in attributed_after:
                attribution_stage.attribute_pending(limit)
                refresh()

        tables = tables_after(*(partial(step, name) for name in order))

    assert tables == expected_tables


def test_a_file_given_twice_in_one_command_is_loaded_once(logs, ingest, queries, reconcile):
    path = logs("t", FIRST)
    copy = path.with_name("copy")
    copy.write_bytes(gzip.compress(path.read_bytes()))

    account = ingest("rpctrace", path, path, copy, server="mds1")

    assert queries("SELECT sum(count) FROM telemetry_rpcwindow") == [(8,)]
    assert queries("SELECT count(*) FROM ingest_segment") == [(1,)]
    assert account["operations"] == 8
    assert reconcile()


@pytest.mark.parametrize("order", list(permutations(range(2))))
def test_overlapping_traces_in_one_command_count_each_record_once(
    logs, ingest, queries, reconcile, order
):
    paths = [logs("first", FIRST), logs("second", SECOND)]

    account = ingest("rpctrace", *(paths[number] for number in order), server="mds1")

    assert account["operations"] == len({*FIRST.split("\n"), *SECOND.split("\n")}) == 12
    assert queries("SELECT sum(count) FROM telemetry_rpcwindow") == [(12,)]
    assert reconcile()


def test_a_trace_may_contain_another_trace_of_the_same_command(logs, ingest, queries, reconcile):
    account = ingest(
        "rpctrace", logs("all", FIRST), logs("some", FIRST.split("\n")[2]), server="mds1"
    )

    assert account["operations"] == 8
    assert queries("SELECT count(*) FROM ingest_segment") == [(2,)]
    assert reconcile()


def test_a_later_overlapping_trace_is_refused(logs, ingest, queries):
    first, second = logs("first", FIRST), logs("second", SECOND)
    ingest("rpctrace", first, server="mds1")

    with pytest.raises(CommandError) as error:
        ingest("rpctrace", second, server="mds1")

    assert f"{second} overlaps {first} of server mds1" in str(error.value)
    assert "--replace" in str(error.value)
    assert queries("SELECT sum(count) FROM telemetry_rpcwindow") == [(8,)]


def test_the_replace_option_replaces_an_overlapping_trace(logs, ingest, queries, reconcile):
    ingest("rpctrace", logs("first", FIRST), server="mds1")

    account = ingest("rpctrace", logs("second", SECOND), server="mds1", replace=True)

    assert account["operations"] == 8
    assert queries("SELECT sum(count) FROM telemetry_attributedrpc") == [(8,)]
    assert queries("SELECT count(*) FROM telemetry_coverage") == [(1,)]
    assert reconcile()


def test_a_loaded_trace_may_be_given_again_with_an_overlapping_trace(
    logs, ingest, queries, reconcile
):
    first, second = logs("first", FIRST), logs("second", SECOND)
    ingest("rpctrace", first, server="mds1")

    account = ingest("rpctrace", first, second, server="mds1", replace=True)

    assert account["operations"] == 12
    assert queries("SELECT sum(count) FROM telemetry_attributedrpc") == [(12,)]
    assert reconcile()


def test_a_loaded_trace_does_not_block_a_later_trace_in_the_same_command(logs, ingest, queries):
    first, later = logs("first", FIRST), logs("later", rpc("12:30"))
    ingest("rpctrace", first, server="mds1")

    account = ingest("rpctrace", first, later, server="mds1")

    assert account["operations"] == 9
    assert queries("SELECT sum(count) FROM telemetry_attributedrpc") == [(9,)]


def test_traces_of_two_servers_may_overlap(logs, ingest, reconcile):
    ingest("rpctrace", logs("first", FIRST), server="mds1")

    assert ingest("rpctrace", logs("second", SECOND), server="mds2")["operations"] == 8
    assert reconcile()


def test_traces_that_share_a_window_are_added_up(logs, ingest, queries, reconcile):
    ingest("rpctrace", logs("first", rpc("12:00:01", us=(10, 20))), server="mds1")
    ingest("rpctrace", logs("second", rpc("12:00:05", us=(30, 50))), server="mds1")

    assert queries(
        "SELECT sum(count), min(service_us_min), max(service_us_max), sum(total_us_sum) "
        "FROM telemetry_attributedrpc"
    ) == [(2, 10, 30, 70)]
    assert reconcile()
