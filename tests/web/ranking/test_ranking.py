"""The ranking page and its exports."""

import re

import pytest

from ioportal.jobs.models import DirtyEvidence, DirtyStatistics, Job
from ioportal.web.ranking.page import COUNTING
from tests.logs import at
from tests.web.reading import csv_of, json_of, text_of, words_of

MARK = "Statistics or flags of 1 of these jobs are pending"
LAST_QUARTER = "start=2017-07-05T12:45:00Z&end=2017-07-05T13:30:00Z"


@pytest.fixture
def jobs(new_job):
    """Jobs of alice and bob on 4 nodes from 12:00 to 13:00, and one of bob that ended before."""
    for owner, opens in (("alice", 800), ("bob", 400)):
        new_job({"opens": opens}, batch_id=f"{owner}1", owner=owner, node_count=4)
    new_job({"opens": 9}, batch_id="early", started_at=at("10:00"), ended_at=at("11:00"))


def test_jobs_at_the_edge_of_a_range_count_whole(as_staff, jobs):
    answer = json_of(as_staff.get(f"/ranking/?by=opens&per=node_hour&{LAST_QUARTER}&format=json"))

    rows = [(row["user"], row["value"], row["node_hours"]) for row in answer["rows"]]
    assert rows == [("alice", 200, 4), ("bob", 100, 4)]
    assert answer["counting"] == COUNTING


def test_the_smallest_node_hours_are_those_of_the_whole_run(as_staff, jobs):
    address = f"/ranking/?by=opens&per=node_hour&{LAST_QUARTER}&format=json&min_node_hours="

    assert len(json_of(as_staff.get(f"{address}4"))["rows"]) == 2
    assert json_of(as_staff.get(f"{address}4.1"))["rows"] == []


def test_a_ratio_shows_its_smallest_node_hours_and_unknown_jobs(as_staff, jobs, new_job):
    new_job({}, batch_id="unknown", owner="alice", node_count=4)

    short = {"node_count": 8, "started_at": at("12:58:59")}  # about a minute
    new_job({"opens": 1}, batch_id="short", owner="carol", ended_at=at("13:00"), **short)

    page = text_of(as_staff.get(f"/ranking/?by=opens&per=node_hour&{LAST_QUARTER}"))

    assert "0.14" in words_of(as_staff.get(f"/ranking/?by=opens&{LAST_QUARTER}"))  # node-hours
    assert re.search('name="min_node_hours" value="1"', page)
    assert "1 (50 %)" in page
    assert "min_node_hours" not in re.findall(
        'name="([^"]+)" value="1"', text_of(as_staff.get("/ranking/"))
    )


def test_pending_statistics_are_counted(as_staff, alice, jobs):
    pending = [Job.objects.get(batch_id="alice1").pk]
    DirtyStatistics.objects.mark(pending)
    DirtyEvidence.objects.mark(pending)
    for address in (
        "/jobs/?last=all",
        "/compare/?arm=user%3Dalice&arm=user%3Dbob",
        "/mitigations/what-worked/",
        "/trends/change-points/?last=all",
        "/ranking/?by=opens",
        "/populations/",
        "/users/",
        "/users/alice/",
        "/trends/?last=all",
    ):
        assert MARK in words_of(as_staff.get(address)), address
        if address not in {"/users/alice/", "/trends/?last=all"}:  # pages of several exports
            export = json_of(as_staff.get(f"{address}{'&' if '?' in address else '?'}format=json"))
            assert export["pending_statistics"] == 1, address
    assert "are pending" not in words_of(as_staff.get("/ranking/?by=opens&user=bob"))
    DirtyStatistics.objects.all().delete()  # flags are still pending
    as_staff.force_login(alice)
    assert MARK in words_of(as_staff.get("/"))
    DirtyEvidence.objects.all().delete()
    assert "are pending" not in words_of(as_staff.get("/"))


def test_the_page_explains_how_jobs_count(as_staff, jobs):
    assert COUNTING in words_of(as_staff.get("/ranking/?by=opens"))


def test_the_export_of_jobs_has_key_cluster_and_batch_id(as_staff, jobs):
    highest, *_ = csv_of(as_staff.get("/ranking/?of=job&by=opens&format=csv"))

    assert (highest["cluster"], highest["job"]) == ("anvil", "alice1")
    page = as_staff.get(f"/jobs/{highest['id']}/")
    assert "alice1" in words_of(page)
