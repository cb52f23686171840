"""The page of one flag: numbers, similar jobs and flags, impact, and links."""

import re
from datetime import timedelta
from html import unescape
from importlib import import_module

import pytest
from django.db import connection

from ioportal.findings.models import FlagEvent
from ioportal.site.models import Filesystem, Nid, Server
from ioportal.telemetry.models import ImpactWindow, Principal
from tests.logs import at
from tests.web.cases.lists import listed
from tests.web.reading import csv_of, json_of, text_of, words_of


def test_numbers_of_the_same_title_are_listed_once(as_staff, new_flag):
    flag = new_flag(
        rule="startup-storm",
        numbers={"startup_operations": 2e5, "node_count": 20, "startup_nodes": 20},
        thresholds={"startup_operations": 1.5e5, "startup_nodes": 16},
    )
    words = words_of(as_staff.get(f"/flags/{flag.pk}/"))

    assert words.count("Nodes 20 nodes") == 1
    assert "Nodes 20 nodes 16 nodes" in words


def test_an_upgrade_rounds_stored_figures_of_others(as_staff, new_flag):
    numbers = {"peak_impact_s": 1213.4, "impact_share": 0.2049, "impact_s": 0, "impact_times": None}
    thresholds = {"peak_impact_s": 1210, "impact_share": 0.2}
    flag = new_flag(rule="impact", value=1213.4, numbers=numbers, thresholds=thresholds)
    grown = FlagEvent.objects.create(flag=flag, kind="grew", value=1306.2)
    raised = FlagEvent.objects.create(
        flag=flag, kind="escalated", text="Severity raised to warning: others lost 1,213 s by it."
    )

    [operation] = import_module(
        "ioportal.findings.migrations.0002_round_impact"
    ).Migration.operations
    with connection.cursor() as cursor:
        cursor.execute(operation.sql)

    for row in (flag, grown, raised):
        row.refresh_from_db()
    rounded = {"peak_impact_s": 1210, "impact_share": 0.2, "impact_s": 0, "impact_times": None}
    assert (flag.value, flag.numbers, grown.value) == (1210, rounded, 1300)
    assert raised.text == "Severity raised to warning: others waited for it."


OUTLIER = {
    "rule": "outlier",
    "numbers": {"z_score": 6.0, "metadata_operations_per_node": 1e6, "usual_operations": 100},
    "thresholds": {"z_score": 3.0},
}


def test_an_outlier_has_a_histogram_of_similar_jobs(as_staff, new_job, new_flag):
    for operations in (50, 60, 900):
        before = at("12:00") - timedelta(days=1)
        new_job({"metadata_operations_per_node": operations}, started_at=before)
    flag = new_flag(new_job({"metadata_operations_per_node": 1e6}), **OUTLIER)

    rows = csv_of(as_staff.get(f"/flags/{flag.pk}/similar-jobs/?format=csv"))

    bins = [row for row in rows if int(row["count"])]
    assert [row["count"] for row in bins] == ["2", "1"]
    assert int(rows[-1]["from"]) <= 1e6 < int(rows[-1]["below"])
    words = words_of(as_staff.get(f"/flags/{flag.pk}/"))
    assert "3 similar jobs with today's figures" in words
    assert "figure-similar-jobs" in text_of(as_staff.get(f"/flags/{flag.pk}/"))


def test_owners_do_not_see_the_histogram_of_similar_jobs(as_alice, new_job, new_flag):
    flag = new_flag(new_job({"metadata_operations_per_node": 1e6}), **OUTLIER)

    assert "figure-similar-jobs" not in text_of(as_alice.get(f"/flags/{flag.pk}/"))
    assert as_alice.get(f"/flags/{flag.pk}/similar-jobs/").status_code == 404


def test_impact_of_a_host_is_limited_to_the_time_and_filesystem_of_the_flag(
    as_staff, mds, new_flag
):
    pond = Filesystem.objects.create(name="pond")
    elsewhere = Server.objects.create(name="mds9", filesystem=pond, kind=Server.Kind.MDS)
    host = Nid.objects.create(text="10.0.0.7@tcp")
    flag = new_flag(
        rule="host-outside-jobs",
        subject_kind="host",
        subject=f"3:{host.pk}",
        filesystem=mds.filesystem,
        since=at("12:20"),
        until=at("12:25"),
    )
    for clock, server, us in (("12:18", mds, 5e6), ("12:21", elsewhere, 7e6), ("11:00", mds, 9e6)):
        _add_impact(clock, server, 3, host.pk, us)

    assert json_of(as_staff.get(f"/flags/{flag.pk}/?format=json"))["impact_s"] == 5
    # The trace shows no queue.
    assert "/incidents/impact/mds1/queue/" not in text_of(as_staff.get(f"/flags/{flag.pk}/"))
    assert csv_of(as_staff.get("/cases/?format=csv"))[0]["name"] == "host 10.0.0.7@tcp"


def _add_impact(clock, server, kind, key, us):
    times = dict.fromkeys(("all_work_us", "work_us", "others_us", "others_usual_us"), 1)
    key = {"server_id": server.pk, "kind": kind, "principal_id": key}
    ImpactWindow.objects.create(start=at(clock), impact_us=int(us), **key, **times)


def test_the_impact_of_a_job_is_the_same_on_all_pages(as_staff, mds, new_flag, new_job):
    """Its first window begins before it; others still wait after its end."""
    job = new_job({}, started_at=at("12:00:02"), ended_at=at("12:00:15"))
    flag = new_flag(job, rule="impact", since=at("12:00:02"), until=at("12:00:15"))
    for clock, us in (("12:00:00", 5e6), ("12:00:10", 7e6), ("12:00:20", 9e6)):
        _add_impact(clock, mds, Principal.JOB, job.pk, us)

    assert json_of(as_staff.get(f"/flags/{flag.pk}/?format=json"))["impact_s"] == 21
    assert " job 21.0 " in words_of(as_staff.get(f"/jobs/{job.pk}/"))


@pytest.mark.parametrize(
    ("visitor", "status"),
    [
        pytest.param("sam", 200, id="staff"),
        pytest.param("alice", 200, id="the owner"),
        pytest.param("bob", 200, id="a member of the project"),
        pytest.param("charlie", 404, id="a stranger"),
        pytest.param(None, 302, id="anonymous"),
    ],
)
def test_a_flag_is_visible_to_those_who_see_its_job(visitor, status, request, client, new_flag):
    flag = new_flag()
    if visitor:
        client.force_login(request.getfixturevalue(visitor))

    for path in (f"/flags/{flag.pk}/", f"/flags/{flag.pk}/?format=json"):
        assert client.get(path).status_code == status
    if status == 404:
        assert listed(client, "&state=all") == []
        assert client.get(f"/flags/{flag.pk}/history/").status_code == 404
    if status == 302:
        assert client.get("/cases/")["Location"].startswith("/login/")


@pytest.mark.parametrize(
    ("kind", "subject"),
    [("project", "PHY12"), ("campaign", "PHY12:relax"), ("project", "PHY1"), ("user", "alice")],
)
def test_members_of_a_project_see_its_flags_and_those_of_its_campaigns(
    client, bob, new_flag, kind, subject
):
    owner = "alice" if kind == "user" else ""
    flag = new_flag(rule="campaign", subject_kind=kind, subject=subject, owner=owner)
    client.force_login(bob)
    status = client.get(f"/flags/{flag.pk}/").status_code

    assert status == (200 if subject.startswith("PHY12") else 404)
    expected = "relax of project PHY12" if kind == "campaign" else ""
    if status == 200:
        assert expected in words_of(client.get(f"/flags/{flag.pk}/"))


def test_a_flag_of_a_user_links_to_the_jobs(as_staff, new_job, new_flag):
    flag = new_flag(rule="campaign", subject_kind="user", subject="alice")
    for job, clock in (("during", "12:30"), ("after", "13:30")):
        new_job(batch_id=job, started_at=at(clock), ended_at=at(clock) + timedelta(minutes=9))
    text = text_of(as_staff.get(f"/flags/{flag.pk}/"))
    [address] = re.findall(r'href="(/jobs/\?[^"]*)">these jobs', text)
    jobs = text_of(as_staff.get(unescape(address)))

    assert ">during<" in jobs
    assert ">after<" not in jobs


def test_a_flag_of_a_filesystem_links_to_unregistered_nids(as_staff, mds, new_flag):
    subject = {"subject_kind": "filesystem", "subject": str(mds.filesystem_id)}
    flag = new_flag(rule="unattributed", filesystem=mds.filesystem, **subject)

    page = text_of(as_staff.get(f"/flags/{flag.pk}/"))
    assert 'href="/ingest/nids/">unregistered NIDs' in page


def test_a_suppressed_flag_shows_the_reason(as_staff, new_flag):
    flag = new_flag(suppression_reasons=["Its data are partial."])

    assert "Suppressed: Its data are partial." in words_of(as_staff.get(f"/flags/{flag.pk}/"))
    flag.ended_at, flag.ending = flag.until, "Below the thresholds."
    flag.save()
    words = words_of(as_staff.get(f"/flags/{flag.pk}/"))
    assert "Suppressed until it ended: Its data are partial. Only staff can see this flag." in words
