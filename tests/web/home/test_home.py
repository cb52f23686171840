"""The home page: the site at a glance for staff, their own jobs for users."""

from datetime import timedelta

from tests.logs import at
from tests.web.reading import text_of, words_of


def test_heaviest_jobs_of_the_last_day_are_listed_first(as_staff, new_job):
    new_job({"metadata_operations": 7}, batch_id="light")
    new_job({"metadata_operations": 9}, batch_id="heavy")
    new_job({"metadata_operations": 99}, batch_id="old", started_at=at("12:00") - timedelta(days=2))

    page = text_of(as_staff.get("/"))

    assert page.index(">heavy<") < page.index(">light<")
    assert ">old<" not in page


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


def test_the_style_guide_shows_every_token(as_staff):
    page = text_of(as_staff.get("/styleguide/"))

    assert "var(--series-7)" in page
    assert "var(--bad-soft)" in page
