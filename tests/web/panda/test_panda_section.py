"""The PanDA section of the job page."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ioportal.jobs.models import WorkloadJob
from tests.web.reading import csv_of, json_of, text_of, words_of


@pytest.fixture
def pilot(new_job):
    """A batch job of alice that held three PanDA jobs."""
    return new_job()


@pytest.fixture
def put(put_inside, pilot):
    """Put PanDA jobs inside the pilot."""
    return lambda *numbers, **facts: put_inside(pilot, *numbers, **facts)


@pytest.fixture
def page(as_alice, pilot):
    return lambda rest="": as_alice.get(f"/jobs/{pilot.pk}/{rest}")


def test_a_job_without_panda_jobs_has_no_panda_section(page):
    assert "PanDA" not in words_of(page())
    assert json_of(page("panda/?format=json"))["rows"] == []


def test_the_section_shows_count_states_tasks_and_cpu_time(page, put):
    put(1, 2)
    put(3, state="failed", task_id=None, cpu_s=None, error="pilot 1201: killed")

    words = words_of(page())

    assert "Count 3 States finished 2 failed 1" in words
    assert "Tasks 10995522 (2) , none (1)" in words
    assert "CPU time 2:40:00 50.0 % CPU efficiency" in words
    assert "pilot 1201: killed" in words


def test_shared_figures_are_marked(page, put):
    put(1)
    assert "share this batch job" not in words_of(page())
    assert json_of(page("?format=json"))["shared_batch"] is False

    put(2)
    assert "2 PanDA jobs share this batch job." in words_of(page())
    facts = json_of(page("?format=json"))
    assert (facts["npandajobs"], facts["shared_batch"]) == (2, True)


def test_the_first_jobs_are_listed_and_exports_have_all(page, put):
    put(*range(1, 13))

    words, rows = words_of(page()), csv_of(page("panda/?format=csv"))
    twin = json_of(page("panda/?format=json"))

    assert "First 10 of 12" in words
    assert [row["pandaid"] for row in rows] == [str(number) for number in range(1, 13)]
    assert rows[0]["starttime"] == "2017-07-05T12:05:00+00:00"
    assert (twin["npandajobs"], twin["shared_batch"]) == (12, True)
    assert (twin["rows"][0]["jeditaskid"], twin["rows"][0]["cpuconsumptiontime"]) == (
        10_995_522,
        4_800,
    )


def test_hostile_records_are_escaped(page, put):
    put(1, transformation="<img src=x>\x07", error='"><script>alert(1)</script>', user="=1+1")

    html = text_of(page())

    assert "&lt;img src=x&gt;\\x07" in html
    assert "<script>alert" not in html
    assert csv_of(page("panda/"))[0]["produsername"] == "'=1+1"


def test_panda_jobs_have_the_visibility_of_their_batch_jobs(put, new_job, alice, bob, charlie, sam):
    put(1)
    new_job(owner="charlie", project="CHM7")

    seen = {
        person.username: WorkloadJob.objects.visible_to(person).count()
        for person in (alice, bob, charlie, sam)
    }

    assert seen == {"alice": 1, "bob": 1, "charlie": 0, "sam": 1}


def test_any_number_of_panda_jobs_needs_one_more_query(page, put):
    page()
    with CaptureQueriesContext(connection) as without:
        page()
    put(*range(1, 30), task_id=None)
    put(*range(30, 60))
    with CaptureQueriesContext(connection) as with_them:
        page()

    assert len(with_them) == len(without) + 1
