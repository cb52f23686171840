"""The home page: the site at a glance for staff, their own jobs for users."""

from datetime import timedelta

import pytest
from django.utils import timezone

from ioportal.ingest.models import DirtyDeltas, Segment
from ioportal.site.models import Filesystem
from tests.logs import Run, at, job_stats, sacct
from tests.web.reading import csv_of, json_of, text_of, words_of


@pytest.fixture
def busy(site, logs, ingest, refresh):
    """Job 77 of alice opens a hundred times more than a process outside jobs, 12:00 to 13:00.

    pond-MDT0000 has no reads after 12:10.
    """
    ingest("sacct", logs("jobs.txt", sacct(Run("77", nodes="n1", node_count=1))), cluster="anvil")
    for number, clock in enumerate(("12:00", "12:10", "12:20", "12:30", "12:40", "12:50")):
        entries = {"login1.bash": {"open": 60 * number}, "77": {"open": 6_000 * number}}
        text = job_stats("lake-MDT0000", entries)
        ingest("job_stats", logs(f"lake-{clock}", text), at=at(clock).isoformat())
        if clock < "12:20":
            text = job_stats("pond-MDT0000", {"x.0": {"open": 5}})
            ingest("job_stats", logs(f"pond-{clock}", text), at=at(clock).isoformat())
    refresh()


def test_staff_see_the_load_by_user_and_process(as_staff, busy):
    rows = csv_of(as_staff.get("/load/?format=csv&hours=1"))

    assert [(row["kind"], row["name"]) for row in rows] == [
        ("job", "alice"),
        ("process", "login1.bash"),
    ]
    assert [float(row["metadata_operations"]) for row in rows] == [30_000, 300]
    assert 'href="/users/alice/"' in text_of(as_staff.get("/"))
    assert "process login1.bash" in words_of(as_staff.get("/"))


def test_pending_time_does_not_count_as_idle(as_staff, busy):
    segment = Segment.objects.filter(targets__name="lake-MDT0000").latest("pk")
    lake = Filesystem.objects.get(name="lake")
    span = {"start": at("11:00"), "end": at("13:00")}
    DirtyDeltas.objects.create(segment=segment, filesystem=lake, **span)

    about = json_of(as_staff.get("/load/?format=json&hours=1"))

    assert about["pending_s"] == 3_600
    # pond-MDT0000 was observed from 12:00 to 12:10, without operations.
    assert about["attributed_s"] == 600
    page = text_of(as_staff.get("/?hours=1"))
    assert "pending attribution" in page


def test_silent_sources_are_listed(as_staff, busy):
    words = words_of(as_staff.get("/"))

    assert "1 of 2: pond-MDT0000 since 2017-07-05 12:10:00" in words


def test_old_data_is_marked_with_its_age(as_staff, busy):
    page = text_of(as_staff.get("/"))

    assert 'class="late"' in page
    years = timezone.now().year - 2017
    assert f"{years}\xa0years" in page or f"{years - 1}\xa0years" in page


def test_heaviest_jobs_of_the_last_day_are_listed_first(as_staff, new_job):
    new_job({"metadata_operations": 7}, batch_id="light")
    new_job({"metadata_operations": 9}, batch_id="heavy")
    new_job({"metadata_operations": 99}, batch_id="old", started_at=at("12:00") - timedelta(days=2))

    page = text_of(as_staff.get("/"))

    assert page.index(">heavy<") < page.index(">light<")
    assert ">old<" not in page


def test_pending_work_is_counted(as_staff, busy, logs, ingest):
    text = job_stats("lake-MDT0000", {"99999": {"open": 1}})
    ingest("job_stats", logs("pending", text), at=at("13:00").isoformat())

    assert "Pending job ids 1 Unregistered NIDs 0 Files with rejected lines 0" in words_of(
        as_staff.get("/")
    )


def test_an_empty_site_lists_the_first_steps(as_staff):
    words = words_of(as_staff.get("/"))

    assert "No data loaded" in words
    assert "manage.py register site.toml" in words
    assert "(done)" not in words


def test_registration_is_marked_as_done(as_staff, site):
    assert "(done)" in words_of(as_staff.get("/"))


def test_missing_counters_are_named(as_staff, new_job):
    new_job()

    words = words_of(as_staff.get("/"))

    assert "no metadata target has two reads" in words
    assert "No metadata operations of these jobs are recorded" in words


def test_users_see_their_own_jobs(as_alice, new_job):
    new_job({"metadata_operations": 5}, batch_id="mine")
    new_job({"metadata_operations": 9}, batch_id="secret", owner="bob", project="BIO3")

    words = words_of(as_alice.get("/"))

    assert "mine" in words
    assert "secret" not in words
    assert "Metadata load" not in words


def test_users_see_jobs_of_their_projects_separately(client, new_job, bob):
    new_job(batch_id="of-alice")
    client.force_login(bob)

    words = words_of(client.get("/"))

    assert "No jobs" in words
    assert "Latest project jobs" in words


def test_the_number_of_queries_does_not_grow_with_the_jobs(
    as_staff, busy, django_assert_num_queries, logs, ingest, refresh
):
    with django_assert_num_queries(25):
        as_staff.get("/")
    runs = [Run(str(number), nodes="n2", node_count=1) for number in range(100, 130)]
    ingest("sacct", logs("more.txt", sacct(*runs)), cluster="anvil")
    refresh()
    with django_assert_num_queries(25):
        as_staff.get("/")


def test_the_style_guide_shows_every_token(as_staff):
    page = text_of(as_staff.get("/styleguide/"))

    assert "var(--series-7)" in page
    assert "var(--bad-soft)" in page
