"""The list of cases: order, filters, figures, and the number of queries."""

from datetime import timedelta

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from ioportal.findings.models import Case
from ioportal.jobs.models import Job
from ioportal.site.models import Cluster, Filesystem
from ioportal.telemetry.models import ImpactWindow, Principal
from tests.logs import at
from tests.web.cases.lists import listed
from tests.web.reading import csv_of, json_of, words_of


def test_cases_are_ordered_by_severity_and_latest_data(as_staff, new_case):
    notice = new_case(severity=1)
    older = new_case(severity=3, until=at("12:30"))
    newer = new_case(severity=3)
    warning = new_case(severity=2)

    assert listed(as_staff, "&state=all") == [newer.pk, older.pk, warning.pk, notice.pk]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("", ["abuse", "warning", "seen"], id="worst first, of those to triage"),
        pytest.param("&state=notices", ["notice"], id="notices"),
        pytest.param("&state=all", ["abuse", "warning", "seen", "notice", "done"], id="all"),
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
def test_cases_are_filtered(query, expected, as_staff, new_job, new_case):
    birch = Cluster.objects.create(name="birch", time_zone="UTC", batch_system="pbs")
    lake = Filesystem.objects.create(name="lake")
    resolved = {"state": "resolved", "resolution": "so", "resolved_at": at("20:00")}
    cases = {
        "abuse": new_case(new_job(cluster=birch), severity=3),
        "warning": new_case(new_job(owner="bob", name="relax 2"), filesystem=lake),
        "seen": new_case(
            new_job(batch_id="4711", name="other"),
            until=at("12:20"),
            rule="stat-storm",
            state="acknowledged",
        ),
        "notice": new_case(new_job(owner="fay"), severity=1),
        "done": new_case(new_job(owner="emil"), severity=1, until=at("12:30"), **resolved),
    }

    assert listed(as_staff, query) == [cases[name].pk for name in expected]


def test_an_invalid_filter_shows_no_cases(as_staff, new_case):
    new_case()

    assert "Invalid filter" in words_of(as_staff.get("/cases/?state=odd"))
    assert as_staff.get("/cases/?rule=odd&format=csv").status_code == 400


def test_cases_with_current_impact_come_first(as_staff, mds, new_job, new_case):
    worse = new_case(severity=3)
    with_impact = new_case(new_job(ended_at=None))
    ImpactWindow.objects.create(
        start=at("12:28"),
        server_id=mds.pk,
        kind=Principal.JOB,
        principal_id=with_impact.flags.get().job_id,
        impact_us=90_000_000,
        all_work_us=10_000_000,
        work_us=10_000_000,
        others_us=100_000_000,
        others_usual_us=10_000_000,
        is_estimated=False,
    )

    assert listed(as_staff) == [with_impact.pk, worse.pk]
    assert "running" in words_of(as_staff.get(f"/cases/{with_impact.pk}/"))
    assert "Extra wait of others: 90.0 s in the latest 5 min of data" in words_of(
        as_staff.get("/cases/")
    )
    words = words_of(as_staff.get(f"/cases/{with_impact.pk}/"))
    assert "Extra wait of others: 90.0 s" in words
    flag_page = words_of(as_staff.get(f"/flags/{with_impact.flags.get().pk}/"))
    assert "2017-07-05 12:28:00 2017-07-05 12:28:10 mds1 90.0 s" in flag_page

    Job.objects.filter(pk=with_impact.flags.get().job_id).update(ended_at=at("12:29"))
    assert "Extra wait of others" not in words_of(as_staff.get("/cases/"))


def test_cases_of_users_with_simulated_jobs_are_simulated(as_staff, new_flag):
    case = new_flag(rule="campaign", subject_kind="user", subject="alice", cluster=None).case
    assert not json_of(as_staff.get(f"/cases/{case.pk}/?format=json"))["simulated"]

    Cluster.objects.update(simulated=True)

    assert json_of(as_staff.get(f"/cases/{case.pk}/?format=json"))["simulated"]
    assert "Simulated data:" in words_of(as_staff.get("/cases/"))


@pytest.mark.parametrize(
    ("query", "words"),
    [
        pytest.param("", "Their flags are grouped into cases", id="none at all"),
        pytest.param("?user=nobody", "No matching cases", id="none of the filters"),
    ],
)
def test_an_empty_list_explains_the_next_step(query, words, as_staff):
    assert words in words_of(as_staff.get(f"/cases/{query}"))


def test_the_number_of_queries_does_not_grow_with_the_cases(as_staff, new_job, new_flag, new_case):
    def query_counts():
        counts = []
        for page in pages:
            cache.clear()
            with CaptureQueriesContext(connection) as queries:
                assert as_staff.get(page).status_code == 200
            counts.append(len(queries))
        return counts

    def past(job, name):
        resolved = {"state": "resolved", "resolution": "so", "resolved_at": at("20:00")}
        new_case(job(name), **resolved, resolved_by="sam")

    def job_of(owner):
        return lambda name: new_job(owner=owner, name=name)

    first = new_case(new_job({"metadata_operations": 3e6}, name="first"))
    past(job_of("alice"), "done")
    flag = first.flags.get()
    pages = [
        "/cases/",
        "/cases/?state=all",
        f"/cases/{first.pk}/",
        f"/flags/{flag.pk}/",
        "/jobs/",
        "/users/alice/",
        "/",
    ]
    before = query_counts()
    for owner in ("alice", "bob", "dora"):
        new_case(job_of(owner)("other"), severity=3)
        past(job_of(owner), f"done {owner}")
        new_flag(new_job({"metadata_operations": 4e6}, name="first"))

    assert query_counts() == before


def test_a_case_shows_the_figures_of_its_flags(as_staff, new_job, new_flag):
    for number, day in enumerate((0, 8, 9, 20)):
        end = timezone.now() + timedelta(days=day - 20)
        flag = new_flag(new_job(batch_id=str(number)), since=end, until=end, value=1e6 * number)
    new_flag(value=9e9, suppression_reasons=["Poor."])

    [row] = json_of(as_staff.get("/cases/?format=json"))["rows"]

    assert (row["flags"], row["jobs"], row["suppressed"]) == (4, 4, 1)
    assert (row["total"], row["highest"], row["threshold"]) == (6e6, 3e6, 2e6)
    assert (row["recent"], row["before"]) == (1, 2)
    words = words_of(as_staff.get(f"/cases/{flag.case_id}/"))
    assert "4 flags, 4 jobs, 1 suppressed" in words
    assert "Total 6,000,000 operations" in words
    assert "Metadata operations of the job (threshold 2,000,000 operations)" in words
    assert "Trend of flags 1 in the latest 7 days, 2 in the 7 days before" in words
    assert "To contest it" not in words


def test_a_case_without_recent_flags_says_when_the_last_one_was(as_staff, new_flag):
    until = timezone.now() - timedelta(days=8)
    case = new_flag(since=until, until=until).case
    Case.objects.update(until=until)

    assert f"none in the latest 7 days; last on {until.day} {until:%b}" in words_of(
        as_staff.get(f"/cases/{case.pk}/")
    )


def test_a_notice_of_a_rule_for_warnings_has_its_reason(as_staff, new_job, new_flag):
    job = new_job()
    flag = new_flag(job, severity=1)
    pages = (f"/cases/{flag.case_id}/", f"/flags/{flag.pk}/")
    reason = (
        "Notice instead of warning: as far as is known, the extra wait of others is less than a "
        "minute."
    )
    assert all(reason in words_of(as_staff.get(page)) for page in pages)

    new_flag(job, rule="impact", value=60, severity=2)

    reason = "Notice instead of warning: “Slows down other jobs” flags the same job and is triaged."
    assert all(reason in words_of(as_staff.get(page)) for page in pages)


def test_a_case_without_current_flags_says_so(as_staff, new_flag):
    now = timezone.now()
    case = new_flag(since=now, until=now, ended_at=now, ending="Below the thresholds.").case
    Case.objects.update(until=now)

    words = words_of(as_staff.get(f"/cases/{case.pk}/"))
    assert "Flags no current flag, 1 ended" in words
    assert f"none that still applies; latest data on {now.day} {now:%b}" in words


def test_figures_are_over_the_flags_that_a_user_may_see(client, bob, new_job, new_flag):
    flag = new_flag()
    new_flag(new_job(project="OTHER"), value=5e6)
    client.force_login(bob)

    row = json_of(client.get(f"/cases/{flag.case_id}/?format=json"))
    assert (row["flags"], row["total"], row["highest"]) == (1, 3e6, 3e6)
    assert "To contest it" in words_of(client.get(f"/cases/{flag.case_id}/"))
    rows = csv_of(client.get(f"/cases/{flag.case_id}/flags/?format=csv"))
    assert [int(row["id"]) for row in rows] == [flag.pk]


def test_severity_and_times_are_those_of_visible_flags(client, bob, new_job, new_flag):
    visible = new_job(owner="dora", project="PHY12", name="app")
    hidden = new_job(owner="dora", project="SECRET", name="app")
    case = new_flag(visible, severity=2, until=at("13:00")).case
    new_flag(hidden, severity=3, until=at("15:00"))
    client.force_login(bob)  # of the project PHY12

    page = json_of(client.get(f"/cases/{case.pk}/?format=json"))
    [row] = json_of(client.get("/cases/?format=json"))["rows"]

    for facts in (page, row):
        assert (facts["severity"], facts["until"][11:16]) == ("warning", "13:00")


def test_flags_by_week_are_drawn_and_exported(as_staff, new_job, new_case, new_flag):
    case = new_case(new_job(), until=at("12:30"))
    assert "Flags by week" not in words_of(as_staff.get(f"/cases/{case.pk}/"))
    for weeks in (2, 2, 3):
        flag = new_flag(new_job(), until=at("12:30") + timedelta(weeks=weeks))
        flag.case = case
        flag.save()

    page = as_staff.get(f"/cases/{case.pk}/")
    assert 'id="figure-flags-by-week" type="application/json"' in page.content.decode()
    assert f'href="/cases/{case.pk}/weeks/?format=csv"' in page.content.decode()
    assert "Week of Flags 2017-07-03 1 2017-07-10 0 2017-07-17 2 2017-07-24 1" in words_of(page)
    rows = csv_of(as_staff.get(f"/cases/{case.pk}/weeks/?format=csv"))
    assert [row["flags"] for row in rows] == ["1", "0", "2", "1"]
