"""Any text, any number of times, in any order, beside others: the same rows."""

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
# Racing dumpers: the second file begins with what the first one ends with.
SECOND = "\n".join(rpc(f"12:00:{second:02}", "1@gni", xid=second) for second in range(20, 60, 5))


@pytest.fixture
def day(logs):
    """All kinds of texts of one day: how to load each, by name."""
    running, ended = Run("77", nodes="n[1-2]", node_count=2).running(), Run("78", nodes="n2")
    batch = Run("815", nodes="b1")
    return {
        "trace one": ("rpctrace", logs("t1", FIRST), {"server": "mds1"}),
        "trace two": (
            "rpctrace",
            logs("t2", rpc("12:30", "2@gni"), rpc("12:31", "9@gni", job="815"), "noise"),
            {"server": "mds1"},
        ),
        "trace of another": ("rpctrace", logs("t3", rpc("12:30", "1@gni")), {"server": "mds2"}),
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
def afresh(refresh):
    """Do something, return the tables that result, and take it all back."""

    def run(*steps):
        with transaction.atomic():
            for step in steps:
                step()
            tasks.attribute_pending()
            refresh()
            found = contents.everything()
            transaction.set_rollback(True)
        return found

    return run


@pytest.fixture
def loaded_in_order(day, load, afresh):
    """Return the tables after all files were loaded one by one."""
    return afresh(*(partial(load, name) for name in day))


def test_a_text_that_is_loaded_again_changes_nothing(day, load):
    first = {name: load(name) for name in day}
    before = contents.everything()

    again = {name: load(name) for name in day}

    assert contents.everything() == before
    for name, account in first.items():
        lines = ("lines", "accepted", "rejected", "irrelevant", "operations")
        assert [account[key] for key in lines] == [again[name][key] for key in lines]


def test_every_order_of_loading_gives_the_same_tables(
    day, load, afresh, loaded_in_order, reconcile
):
    names = list(day)
    shuffler = random.Random(2017)  # noqa: S311  (an order, not a secret)
    for _ in range(4):
        order = shuffler.sample(names * 2, k=2 * len(names))

        tables = afresh(*(partial(load, name) for name in order), reconcile)

        assert tables == loaded_in_order, order


@settings(
    max_examples=examples(12),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_loading_and_the_stages_may_be_interleaved_anyhow(
    day, load, afresh, loaded_in_order, refresh, data
):
    """Texts are loaded as agents do: the stages run when they do."""
    names = list(day)
    order = data.draw(st.permutations(names))
    charged_after = data.draw(st.sets(st.sampled_from(names)))
    limit = data.draw(st.integers(1, 4))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ioportal.ingest.management.commands.ingest.drain", lambda _stage: None)

        def step(name):
            load(name)
            if name in charged_after:
                attribution_stage.attribute_pending(limit)
                refresh()

        tables = afresh(*(partial(step, name) for name in order))

    assert tables == loaded_in_order


def test_a_text_given_twice_in_one_command_is_loaded_once(logs, ingest, queries, reconcile):
    path = logs("t", FIRST)
    copy = path.with_name("copy")
    copy.write_bytes(gzip.compress(path.read_bytes()))

    account = ingest("rpctrace", path, path, copy, server="mds1")

    assert queries("SELECT sum(count) FROM telemetry_rpcwindow") == [(8,)]
    assert queries("SELECT count(*) FROM ingest_segment") == [(1,)]
    assert account["operations"] == 8
    assert reconcile()


@pytest.mark.parametrize("order", list(permutations(range(2))))
def test_overlapping_traces_of_one_command_count_a_record_once(
    logs, ingest, queries, reconcile, order
):
    paths = [logs("one", FIRST), logs("two", SECOND)]

    account = ingest("rpctrace", *(paths[number] for number in order), server="mds1")

    assert account["operations"] == len({*FIRST.split("\n"), *SECOND.split("\n")}) == 12
    assert queries("SELECT sum(count) FROM telemetry_rpcwindow") == [(12,)]
    assert reconcile()


def test_a_trace_may_lie_wholly_in_another_of_its_command(logs, ingest, queries, reconcile):
    account = ingest(
        "rpctrace", logs("all", FIRST), logs("some", FIRST.split("\n")[2]), server="mds1"
    )

    assert account["operations"] == 8
    assert queries("SELECT count(*) FROM ingest_segment") == [(2,)]
    assert reconcile()


def test_an_overlapping_trace_that_comes_later_is_refused_by_name(logs, ingest, queries):
    one, two = logs("one", FIRST), logs("two", SECOND)
    ingest("rpctrace", one, server="mds1")

    with pytest.raises(CommandError) as refusal:
        ingest("rpctrace", two, server="mds1")

    assert f"{two} overlaps {one} of server mds1" in str(refusal.value)
    assert "--replace" in str(refusal.value)
    assert queries("SELECT sum(count) FROM telemetry_rpcwindow") == [(8,)]


def test_an_overlapping_trace_replaces_the_loaded_one_when_asked(logs, ingest, queries, reconcile):
    ingest("rpctrace", logs("one", FIRST), server="mds1")

    account = ingest("rpctrace", logs("two", SECOND), server="mds1", replace=True)

    assert account["operations"] == 8
    assert queries("SELECT sum(count) FROM telemetry_attributedrpc") == [(8,)]
    assert queries("SELECT count(*) FROM telemetry_coverage") == [(1,)]
    assert reconcile()


def test_the_loaded_trace_may_be_given_again_beside_the_one_that_overlaps_it(
    logs, ingest, queries, reconcile
):
    one, two = logs("one", FIRST), logs("two", SECOND)
    ingest("rpctrace", one, server="mds1")

    account = ingest("rpctrace", one, two, server="mds1", replace=True)

    assert account["operations"] == 12
    assert queries("SELECT sum(count) FROM telemetry_attributedrpc") == [(12,)]
    assert reconcile()


def test_a_loaded_trace_does_not_keep_its_neighbour_from_being_loaded(logs, ingest, queries):
    one, later = logs("one", FIRST), logs("later", rpc("12:30"))
    ingest("rpctrace", one, server="mds1")

    account = ingest("rpctrace", one, later, server="mds1")

    assert account["operations"] == 9
    assert queries("SELECT sum(count) FROM telemetry_attributedrpc") == [(9,)]


def test_traces_of_two_servers_may_overlap(logs, ingest, reconcile):
    ingest("rpctrace", logs("one", FIRST), server="mds1")

    assert ingest("rpctrace", logs("two", SECOND), server="mds2")["operations"] == 8
    assert reconcile()


def test_traces_that_share_a_window_add_up_in_it(logs, ingest, queries, reconcile):
    ingest("rpctrace", logs("one", rpc("12:00:01", us=(10, 20))), server="mds1")
    ingest("rpctrace", logs("two", rpc("12:00:05", us=(30, 50))), server="mds1")

    assert queries(
        "SELECT sum(count), min(service_us_min), max(service_us_max), sum(total_us_sum) "
        "FROM telemetry_attributedrpc"
    ) == [(2, 10, 30, 70)]
    assert reconcile()
