"""Servers: how long requests waited, of which kind they were, for staff."""

import json

import pytest

from tests.collectors.lustre.counters import FIXTURES
from tests.logs import Run, sacct
from tests.web.reading import text_of

READS = FIXTURES / "lustre_service_stats"


@pytest.fixture
def reads(site, ingest):
    for name, minute in (("get_param_2.12_a", 0), ("get_param_2.12_b", 1), ("get_param_2.15", 2)):
        path = READS / f"{name}.txt"
        ingest("mds_stats", path, server="mds1", at=f"2019-06-20T12:0{minute}:00Z")


def rows(answer):
    assert answer.status_code == 200
    return json.loads(text_of(answer))["rows"]


def test_the_services_of_a_server_stand_side_by_side(as_staff, reads):
    answer = as_staff.get("/servers/mds1/", {"end": "2019-06-20T12:01:00Z", "format": "json"})

    by_name = {row["service"]: row for row in rows(answer)}
    assert by_name["mdt"] == {
        "service": "mdt",
        "requests": 6000,
        "requests_per_second": 100.0,
        "mean_wait_us": 1000.0,  # of 6,000 requests, 6 s together
        "mean_handling_us": 50.0,  # of the 600 that this version times
        "mean_queue_depth": 6.0,
        "mean_active": 20.0,
    }
    assert by_name["mdt_rdpg"]["mean_wait_us"] == 20.0
    assert by_name["mdt_rdpg"]["requests"] == 1800


def test_a_chart_shows_one_service_as_its_twin_does(as_staff, reads):
    chosen = {"service": "mdt", "format": "json"}

    wait = rows(as_staff.get("/servers/mds1/charts/wait/", chosen))
    kinds = rows(as_staff.get("/servers/mds1/charts/requests/", chosen))

    assert [row["wait"] for row in wait] == [1000.0, 20.0]
    assert kinds[0]["ldlm_ibits_enqueue"] == 80.0
    assert kinds[0]["mds_reint_open"] == 10.0
    assert "req_waittime" not in kinds[0]


def test_the_page_marks_where_counters_began_anew(as_staff, reads):
    page = text_of(as_staff.get("/servers/mds1/"))

    assert "counter reset" in page
    assert "Mean wait" in page
    assert "Wait in the queue" in page


def test_the_list_says_when_each_server_was_observed_last(as_staff, reads):
    listed = {row["server"]: row for row in rows(as_staff.get("/servers/", {"format": "json"}))}

    assert listed["mds1"]["services_read_until"] == "2019-06-20T12:02:00+00:00"
    assert listed["mds2"]["services_read_until"] is None
    assert "oss1" in text_of(as_staff.get("/servers/"))


def test_a_server_that_was_never_read_says_how(as_staff, site):
    assert "manage.py ingest mds_stats --server mds2" in text_of(as_staff.get("/servers/mds2/"))


def test_the_page_asks_the_database_a_few_questions(as_staff, reads, django_assert_num_queries):
    with django_assert_num_queries(13):
        as_staff.get("/servers/mds1/")


def test_who_sent_requests_is_named_with_the_jobs_of_then(as_staff, site, ingest, logs):
    ingest("sacct", logs("j", sacct(Run("77", nodes="n1"))), cluster="anvil")
    history = FIXTURES / "lustre_req_history" / "get_param_2.12.txt"
    ingest("req_history", history, server="mds1")

    page = text_of(as_staff.get("/servers/mds1/"))
    [first, _] = rows(as_staff.get("/servers/mds1/senders/", {"format": "json"}))

    assert "Who sent requests" in page
    assert ">77</a>" in page
    assert (first["nid"], first["node"], first["jobs"], first["requests"]) == (
        "1@gni",
        "n1",
        "77",
        20,
    )
