"""Trends of PanDA jobs; expected figures are computed by hand."""

import pytest
from django.db.models.functions import Now

from ioportal.jobs.models import WorkloadJob
from tests.logs import at
from tests.web.reading import csv_of, json_of, text_of, words_of

HOURS = {"unit": "panda", "step": "hour", "start": "2017-07-05T12:00Z", "end": "2017-07-05T14:00Z"}


@pytest.fixture
def rows(as_staff):
    """Return the values of a trend's CSV export, one row per hour."""

    def run(name, **query):
        exported = csv_of(as_staff.get(f"/trends/{name}/", {"format": "csv", **HOURS, **query}))
        return [
            {
                column: value and float(value)
                for column, value in row.items()
                if column not in {"bucket", "start", "end"}
            }
            for row in exported
        ]

    return run


@pytest.fixture
def pilots(new_job, put_inside):
    """A batch job of alice with PanDA jobs of all outcomes, and one of bob."""
    shared, other = new_job({"opens": 5}), new_job(owner="bob", project="CHM7")
    put_inside(shared, 1, 2, setup_s=1_320)
    put_inside(shared, 3, state="failed", setup_s=None)
    put_inside(shared, 4, state="closed")
    put_inside(shared, 5, state="running", ended_at=None, modified_at=at("12:35"))
    put_inside(
        other, 6, state="holding", started_at=at("13:00"), ended_at=at("13:30"), core_count=8
    )
    put_inside(other, 7, setup_s=40, started_at=at("13:00"), ended_at=at("13:30"), core_count=8)
    return shared, other


def test_panda_jobs_are_counted_by_outcome(rows, pilots):
    assert rows("jobs-ended") == [
        {"finished": 2, "failed": 1, "cancelled": 1, "other": 0},
        {"finished": 1, "failed": 0, "cancelled": 0, "other": 1},
    ]
    assert rows("jobs-ended", jobstatus="failed")[0]["finished"] == 0
    assert rows("failed-share") == [
        {"n": 3, "failed_share": pytest.approx(1 / 3)},
        {"n": 1, "failed_share": 0},
    ]
    WorkloadJob.objects.filter(state="finished").update(state="closed", changed_at=Now())
    assert rows("failed-share")[1] == {"n": 0, "failed_share": ""}  # unknown, not zero


def test_running_jobs_use_cores_until_the_last_update(rows, pilots):
    assert [row["jobs_peak"] for row in rows("running-jobs")] == [5, 2]
    assert [row["jobs_mean"] for row in rows("running-jobs")] == [7 / 6, 1]
    assert [row["core_hours"] for row in rows("core-hours")] == [16 * 7 / 6, 8]


def test_a_metric_has_median_and_p90_of_own_values(rows, pilots):
    assert rows("panda_setup_s") == [
        {"n": 2, "median": 1_320, "p90": 1_320},
        {"n": 1, "median": 40, "p90": 40},
    ]
    assert rows("panda_cpu_efficiency")[1] == {"n": 2, "median": 4_800 / 8 / 1_800, "p90": 1 / 3}


def test_shared_values_are_not_drawn_for_panda_jobs(as_staff, pilots):
    page = text_of(as_staff.get("/trends/", {**HOURS, "metric": "opens"}))

    assert "Unknown metric &#x27;opens&#x27;. Ignored." in page
    assert 'data-plot="figure-panda_setup_s"' in page
    assert "nodes-in-use" not in page
    assert as_staff.get("/trends/opens/?unit=panda").status_code == 404
    assert as_staff.get("/trends/panda_setup_s/").status_code == 404


def test_exports_and_lists_preserve_the_unit(as_staff, pilots):
    page = text_of(as_staff.get("/trends/", {**HOURS, "computingsite": "ORNL_Titan_MCORE"}))

    assert 'href="/trends/?start=2017-07-05T12%3A00Z' in page  # batch jobs have no such filter
    assert 'href="/trends/failed-share/?unit=panda&amp;computingsite=ORNL_Titan_MCORE' in page
    assert 'href="/panda/?computingsite=ORNL_Titan_MCORE&amp;start=2017-07-05T12' in page
    twin = json_of(as_staff.get("/trends/failed-share/", {**HOURS, "format": "json"}))
    assert (twin["counted"], twin["unit"]) == ("PanDA jobs", "share")
    assert "&#x27;joy&#x27; is not one of jobs, panda." in text_of(
        as_staff.get("/trends/?unit=joy")
    )


def test_users_see_panda_jobs_inside_their_jobs_only(client, pilots, alice):
    client.force_login(alice)

    _, *after = csv_of(client.get("/trends/jobs-ended/", {"format": "csv", **HOURS}))

    assert [row["finished"] for row in after] == ["0"]
    shares = csv_of(client.get("/trends/failed-share/", {"format": "csv", **HOURS}))
    assert [row["n"] for row in shares] == ["3", "0"]


def test_an_empty_page_explains_the_source_of_panda_jobs(as_staff, new_job):
    new_job()

    assert "No PanDA jobs yet" in words_of(as_staff.get("/trends/?unit=panda"))
    assert "No PanDA jobs yet" in words_of(as_staff.get("/populations/?unit=panda"))
    assert "No PanDA jobs match" in words_of(as_staff.get("/trends/?unit=panda&pandaid=5"))


def test_the_number_of_queries_does_not_grow_with_the_panda_jobs(
    as_staff, pilots, put_inside, django_assert_num_queries
):
    with django_assert_num_queries(29):
        as_staff.get("/trends/?unit=panda")
    put_inside(pilots[0], *range(10, 40))
    with django_assert_num_queries(29):
        as_staff.get("/trends/?unit=panda")
