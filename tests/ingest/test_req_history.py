"""Histories of requests: counted once, charged to nobody, and added to nothing."""

import pytest
from django.core.management import CommandError

from ioportal.activity.top_clients import top_clients
from ioportal.site.models import Server
from ioportal.times import moment
from tests.collectors.lustre.counters import FIXTURES
from tests.logs import Run, rpc, sacct

HISTORY = FIXTURES / "lustre_req_history" / "get_param_2.12.txt"  # 39 requests from 12:05 on


@pytest.fixture
def load(site, logs, ingest):
    def run(form, name, text, **options):
        return ingest(form, logs(name, text), **options)

    return run


@pytest.fixture
def sent(queries):
    """How many requests are stored."""
    return lambda: queries("SELECT coalesce(sum(count), 0)::int FROM telemetry_requestwindow")[0][0]


def test_senders_are_named_with_the_jobs_that_held_their_nodes(load, ingest, reconcile):
    load(
        "sacct",
        "j",
        sacct(Run("77", nodes="n1"), Run("78", nodes="n1", end="12:05")),
        cluster="anvil",
    )

    account = ingest("req_history", HISTORY, server="mds1")

    server = Server.objects.get(name="mds1")
    most, other = top_clients(
        server.pk, moment("2017-07-05T12:00:00Z"), moment("2017-07-05T13:00:00Z")
    )
    assert (most.nid.text, most.nid.node.name, most.requests) == ("1@gni", "n1", 20)
    assert [job.batch_id for job in most.jobs] == ["77"]
    assert most.kinds == [("LDLM_ENQUEUE", 10), ("MDS_GETATTR", 5), ("MDS_CLOSE", 5)]
    assert (other.nid.text, other.jobs) == ("2@gni", [])
    assert account["accepted"] == 39
    assert reconcile() == "2 segments reconcile."


def test_what_two_polls_show_is_counted_once(site, ingest, sent, logs, reconcile):
    lines = HISTORY.read_text().splitlines(keepends=True)
    first, second = logs("first", "".join(lines[:25])), logs("second", "".join(lines))

    ingest("req_history", first, second, server="mds1")

    assert sent() == 39
    assert reconcile() == "2 segments reconcile."


def test_a_later_poll_that_overlaps_is_refused_unless_both_replace(site, ingest, sent, logs):
    lines = HISTORY.read_text().splitlines(keepends=True)
    first, second = logs("first", "".join(lines[:25])), logs("second", "".join(lines))
    ingest("req_history", first, server="mds1")

    with pytest.raises(CommandError, match="overlaps"):
        ingest("req_history", second, server="mds1")
    ingest("req_history", first, second, server="mds1", replace=True)

    assert sent() == 39


def test_a_trace_of_the_same_time_is_another_matter(load, ingest, charged, sent, reconcile):
    ingest("req_history", HISTORY, server="mds1")
    load("rpctrace", "t", rpc("12:05:05", "1@gni"), server="mds1")

    assert charged() == {("host", "1@gni"): 1}
    assert sent() == 39
    assert reconcile() == "2 segments reconcile."


def test_a_text_without_names_must_be_told_its_service(site, ingest, sent):
    path = HISTORY.with_name("mdt_1.8.txt")

    with pytest.raises(CommandError, match="--service"):
        ingest("req_history", path, server="mds1")
    ingest("req_history", path, server="mds1", service="mdt")

    assert sent() == 12
