"""Histories of requests: charged as RPCs are, and never added to a trace of the same time."""

import pytest
from django.core.management import CommandError

from ioportal.jobs.models import Job
from tests.collectors.lustre.counters import FIXTURES
from tests.logs import Run, rpc, sacct

HISTORY = FIXTURES / "lustre_req_history" / "get_param_2.12.txt"  # 39 requests from 12:05 on


@pytest.fixture
def load(site, logs, ingest):
    def run(form, name, text, **options):
        return ingest(form, logs(name, text), **options)

    return run


def test_requests_are_charged_to_whom_held_the_node(load, ingest, charged, reconcile):
    load("sacct", "j", sacct(Run("77", nodes="n1")), cluster="anvil")

    account = ingest("req_history", HISTORY, server="mds1")

    assert charged() == {("job", "anvil 77"): 20, ("host", "2@gni"): 19}
    assert account["accepted"] == account["operations"] == 39
    assert reconcile() == "2 segments reconcile."


def test_what_two_polls_show_is_counted_once(load, ingest, charged, logs, reconcile):
    lines = HISTORY.read_text().splitlines(keepends=True)
    first, second = logs("first", "".join(lines[:25])), logs("second", "".join(lines))

    ingest("req_history", first, second, server="mds1")

    assert sum(charged().values()) == 39
    assert reconcile() == "2 segments reconcile."


def test_a_later_poll_that_overlaps_is_refused_unless_both_replace(load, ingest, charged, logs):
    lines = HISTORY.read_text().splitlines(keepends=True)
    first, second = logs("first", "".join(lines[:25])), logs("second", "".join(lines))
    ingest("req_history", first, server="mds1")

    with pytest.raises(CommandError, match="overlaps"):
        ingest("req_history", second, server="mds1")
    ingest("req_history", first, second, server="mds1", replace=True)

    assert sum(charged().values()) == 39


@pytest.mark.parametrize("clock", ["12:05:05", "12:04:59", "12:05:15"])
def test_a_trace_of_the_same_windows_is_refused_either_way(load, ingest, clock):
    trace = rpc(clock, "1@gni")
    ingest("req_history", HISTORY, server="mds1")

    with pytest.raises(CommandError, match="overlaps"):
        load("rpctrace", "t", trace, server="mds1")
    load("rpctrace", "t", trace, server="mds2")
    with pytest.raises(CommandError, match="overlaps"):
        ingest("req_history", HISTORY, server="mds2")


def test_a_trace_that_replaces_takes_the_place_of_the_history(load, ingest, charged, reconcile):
    ingest("req_history", HISTORY, server="mds1")

    load("rpctrace", "t", rpc("12:05:05", "1@gni"), server="mds1", replace=True)

    assert charged() == {("host", "1@gni"): 1}
    assert reconcile() == "1 segments reconcile."


def test_rates_and_times_of_a_job_rest_on_traces_alone(load, ingest, refresh, call):
    load("sacct", "j", sacct(Run("77", nodes="n1")), cluster="anvil")
    ingest("req_history", HISTORY, server="mds1")
    load(
        "rpctrace", "t", "\n".join([rpc("12:30", "1@gni"), rpc("12:30:10", "1@gni")]), server="mds1"
    )
    refresh()

    statistics = Job.objects.get().statistics

    assert statistics.metadata_rpcs == 2
    assert statistics.mean_service_us == 30
    assert "MDS_CLOSE" not in call("rpc_report", "--job", "77")


def test_a_text_without_names_must_be_told_its_service(load, ingest):
    path = HISTORY.with_name("mdt_1.8.txt")

    with pytest.raises(CommandError, match="--service"):
        ingest("req_history", path, server="mds1")
    assert ingest("req_history", path, server="mds1", service="mdt")["operations"] == 12
