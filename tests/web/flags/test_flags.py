"""The list of flags: order, filters, and the number of queries."""

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ioportal.jobs.models import Job
from ioportal.site.models import Cluster, Filesystem
from ioportal.telemetry.models import ImpactWindow, Principal
from tests.logs import at
from tests.web.flags.lists import listed
from tests.web.reading import json_of, words_of


def test_flags_are_ordered_by_severity_and_latest_data(as_staff, new_flag):
    notice = new_flag(severity=1)
    older = new_flag(severity=3, until=at("12:30"))
    newer = new_flag(severity=3)
    warning = new_flag(severity=2)

    assert listed(as_staff) == [newer.pk, older.pk, warning.pk, notice.pk]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("", ["abuse", "warning", "seen"], id="worst first, of those to triage"),
        pytest.param("&state=all", ["abuse", "warning", "seen", "done"], id="all"),
        pytest.param("&state=acknowledged", ["seen"], id="in a state"),
        pytest.param("&severity=3", ["abuse"], id="of a severity"),
        pytest.param("&rule=stat-storm", ["seen"], id="of a rule"),
        pytest.param("&cluster=birch", ["abuse"], id="of a cluster"),
        pytest.param("&filesystem=lake", ["warning"], id="of a filesystem"),
        pytest.param("&user=bob,dora", ["warning"], id="of users"),
        pytest.param("&q=4711", ["seen"], id="of a job's id"),
        pytest.param("&q=elax+2", ["warning"], id="of a job's name"),
    ],
)
def test_flags_are_filtered(query, expected, as_staff, new_job, new_flag):
    birch = Cluster.objects.create(name="birch", time_zone="UTC", batch_system="pbs")
    lake = Filesystem.objects.create(name="lake")
    resolved = {"state": "resolved", "resolution": "so", "resolved_at": at("20:00")}
    flags = {
        "abuse": new_flag(new_job(cluster=birch), severity=3),
        "warning": new_flag(new_job(owner="bob", name="relax 2"), filesystem=lake),
        "seen": new_flag(
            new_job(batch_id="4711", name="other"),
            severity=1,
            rule="stat-storm",
            state="acknowledged",
        ),
        "done": new_flag(new_job(owner="emil"), severity=1, until=at("12:30"), **resolved),
    }

    assert listed(as_staff, query) == [flags[name].pk for name in expected]


def test_an_invalid_filter_shows_no_flags(as_staff, new_flag):
    new_flag()

    assert "Invalid filter" in words_of(as_staff.get("/flags/?state=odd"))
    assert as_staff.get("/flags/?rule=odd&format=csv").status_code == 400


def test_flags_with_current_impact_come_first(as_staff, mds, new_job, new_flag):
    worse = new_flag(severity=3)
    with_impact = new_flag(new_job(ended_at=None))
    ImpactWindow.objects.create(
        start=at("12:28"),
        server_id=mds.pk,
        kind=Principal.JOB,
        principal_id=with_impact.job_id,
        impact_us=90_000_000,
        all_work_us=10_000_000,
        work_us=10_000_000,
        others_us=100_000_000,
        others_usual_us=10_000_000,
    )

    assert listed(as_staff) == [with_impact.pk, worse.pk]
    assert "running" in words_of(as_staff.get("/flags/"))
    assert "Slowing others now: 0:01:30 extra wait in the last 5 min" in words_of(
        as_staff.get("/flags/")
    )
    words = words_of(as_staff.get(f"/flags/{with_impact.pk}/"))
    assert "Slowing others now: 0:01:30" in words
    assert "2017-07-05 12:28:00 2017-07-05 12:28:10 mds1 0:01:30" in words

    Job.objects.filter(pk=with_impact.job_id).update(ended_at=at("12:29"))
    assert "Slowing others now" not in words_of(as_staff.get("/flags/"))


def test_flags_of_users_with_simulated_jobs_are_simulated(as_staff, cluster, new_job, new_flag):
    flag = new_flag(rule="campaign", subject_kind="user", subject="alice", cluster=None)
    assert not json_of(as_staff.get(f"/flags/{flag.pk}/?format=json"))["simulated"]

    Cluster.objects.update(simulated=True)

    assert json_of(as_staff.get(f"/flags/{flag.pk}/?format=json"))["simulated"]
    assert "Simulated data:" in words_of(as_staff.get("/flags/"))


@pytest.mark.parametrize(
    ("query", "words"),
    [
        pytest.param("", "Rules are evaluated automatically", id="none at all"),
        pytest.param("?user=nobody", "No matching flags", id="none of the filters"),
    ],
)
def test_an_empty_list_explains_the_next_step(query, words, as_staff):
    assert words in words_of(as_staff.get(f"/flags/{query}"))


def test_the_number_of_queries_does_not_grow_with_the_flags(as_staff, new_job, new_flag):
    def query_counts():
        counts = []
        for page in pages:
            cache.clear()
            with CaptureQueriesContext(connection) as queries:
                assert as_staff.get(page).status_code == 200
            counts.append(len(queries))
        return counts

    def past(owner):
        resolved = {"state": "resolved", "resolution": "so", "resolved_at": at("20:00")}
        new_flag(new_job(owner=owner), **resolved, resolved_by="sam")

    first = new_flag(new_job({"metadata_operations": 3e6}))
    past("alice")
    pages = ["/flags/", "/flags/?state=all", f"/flags/{first.pk}/", "/jobs/", "/users/alice/", "/"]
    before = query_counts()
    for owner in ("alice", "bob", "dora"):
        new_flag(new_job(owner=owner), severity=3)
        past(owner)

    assert query_counts() == before
