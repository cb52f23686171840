"""Users and projects: totals of their jobs."""

from datetime import datetime, timedelta

import pytest
from django.core.cache import cache

from tests.logs import Run, at, sacct
from tests.web.reading import csv_of, json_of, text_of, words_of


@pytest.fixture
def several(new_job):
    """Three jobs of alice with 1, 5 and 9 operations, one of bob, one without statistics."""
    for operations in (9, 1, 5, 4):
        new_job(
            {"metadata_operations": operations, "read_bytes": 100, "quality": "good"},
            batch_id=f"alice{operations}",
            node_count=4,
        )
    figures = {"metadata_operations": 7, "write_bytes": 50, "quality": "poor"}
    new_job(figures, batch_id="bob7", owner="bob", project="BIO3")
    new_job(None, batch_id="fresh", owner="bob", started_at=at("01:00"), ended_at=at("01:30"))


def listed(answer):
    return {row["name"]: row for row in json_of(answer)["rows"]}


def test_jobs_are_summed_by_user(as_staff, several):
    users = listed(as_staff.get("/users/?format=json"))

    assert list(users) == ["alice", "bob"]  # by metadata operations
    alice, bob = users["alice"], users["bob"]
    assert (alice["jobs"], alice["node_hours"], alice["metadata_operations"]) == (4, 16, 19)
    assert (alice["typical"], alice["heaviest"]) == (4.5, 9)  # the mean of the middle two
    assert (alice["read_bytes"], alice["write_bytes"]) == (400, None)  # unknown, not zero
    assert (bob["jobs"], bob["node_hours"]) == (2, 3)
    assert (bob["good"], bob["partial"], bob["poor"], bob["not_computed"]) == (0, 0, 1, 1)


def test_operation_times_are_weighted_by_operations(as_staff, new_job):
    for number, (operations, mean_us) in enumerate([(100, 30.0), (300, 70.0), (900, None)]):
        figures = {"metadata_operations": operations, "mean_operation_us": mean_us}
        new_job(figures, batch_id=f"timed{number}")
    new_job({"metadata_operations": 5}, batch_id="untimed", owner="bob")

    users = listed(as_staff.get("/users/?format=json"))

    assert users["alice"]["mean_operation_us"] == 60
    assert users["bob"]["mean_operation_us"] is None


def test_jobs_are_summed_by_project(as_staff, several):
    projects = listed(as_staff.get("/projects/?format=json&sort=name"))

    assert list(projects) == ["BIO3", "PHY12"]
    assert projects["PHY12"]["jobs"] == 5


def test_heaviest_jobs_are_linked(as_staff, several):
    page = text_of(as_staff.get("/users/"))

    assert 'title="job alice9"' in page


def test_period_and_filters_select_jobs(as_staff, several):
    early = listed(as_staff.get("/users/?format=json&end=2017-07-05T11:00:00Z"))
    latest = listed(as_staff.get("/users/?format=json&last=15m"))
    of_project = listed(as_staff.get("/users/?format=json&project=BIO3"))

    assert {name: row["jobs"] for name, row in early.items()} == {"bob": 1}
    assert {name: row["jobs"] for name, row in latest.items()} == {"alice": 4, "bob": 1}
    assert {name: row["jobs"] for name, row in of_project.items()} == {"bob": 1}


@pytest.mark.parametrize(
    ("sort", "first"),
    [
        ("name", "alice"),
        ("-name", "bob"),
        ("-write_bytes", "bob"),
        ("write_bytes", "bob"),  # unknown values come last in both directions
        ("jobs", "bob"),
        ("no such column", "alice"),
    ],
)
def test_every_column_sorts(as_staff, several, sort, first):
    assert next(iter(listed(as_staff.get("/users/", {"format": "json", "sort": sort})))) == first


def test_a_column_heading_sorts(as_staff, several):
    page = text_of(as_staff.get("/users/?sort=-jobs"))

    assert 'href="?sort=jobs"' in page
    assert 'aria-sort="descending"' in page


def test_a_user_has_a_page_with_heaviest_and_typical_jobs(as_staff, several):
    page = text_of(as_staff.get("/users/alice/"))
    words = words_of(as_staff.get("/users/alice/"))

    worst = page[page.index("heaviest-title") :]
    assert worst.index("alice9") < worst.index("alice5") < worst.index("alice1")
    assert "Typical jobs" in words
    assert "bob7" not in words
    assert 'data-plot="figure-jobs-ended"' in page
    assert "/trends/jobs-ended/?user=alice&amp;format=csv" in page


def test_the_page_has_a_json_export(as_staff, several):
    sums = json_of(as_staff.get("/projects/PHY12/?format=json"))

    assert (sums["name"], sums["jobs"], sums["heaviest"]) == ("PHY12", 5, 9)


def test_users_and_trends_agree_on_the_node_hours_of_a_day(
    as_staff, site, register, logs, ingest, settings
):
    """Jobs run across midnight and share nodes of 16 cores; the expectation counts minutes."""
    settings.TIME_ZONE = "America/New_York"
    register('[[cluster]]\nname = "anvil"\ncores_per_node = 16')
    text = sacct(
        Run("1", "02:00", "05:30", submit="01:00", nodes="n1", cores=4),
        Run("2", "03:00", "07:00", submit="01:00", nodes="n1", cores=12, user="bob"),
        Run("3", "10:00", "29:00", submit="01:00", nodes="n[2-3]", node_count=2, cores=32),
        Run("4", "27:59", "28:01", submit="01:00", nodes="n1", cores=8, user="bob"),
        Run("5", "12:00", "13:00", submit="01:00", nodes="n4", cores=0, user="bob"),
    )
    ingest("sacct", logs("sacct", text), cluster="anvil")
    names, *lines = [line.split("|") for line in text.splitlines()]
    counted = dict.fromkeys(("alice", "bob"), 0.0)
    for line in lines:
        job = dict(zip(names, line, strict=True))
        begin, end = (datetime.fromisoformat(job[name]) for name in ("Start", "End"))
        nodes = int(job["NCPUS"]) / 16 or int(job["NNodes"])
        for minute in range(4 * 60, 28 * 60):  # the day there, on UTC's clock
            if begin <= datetime(2017, 7, 5) + timedelta(minutes=minute) < end:  # noqa: DTZ001  (sacct has no zone)
                counted[job["User"]] += nodes / 60
    day = "start=2017-07-05T00:00:00-04:00&end=2017-07-06T00:00:00-04:00"

    users = listed(as_staff.get(f"/users/?format=json&{day}"))
    trend = csv_of(as_staff.get(f"/trends/node-hours/?format=csv&step=day&{day}"))
    alice = json_of(as_staff.get(f"/users/alice/?format=json&{day}"))

    assert {name: row["node_hours"] for name, row in users.items()} == pytest.approx(counted)
    assert counted == pytest.approx({"alice": 36.375, "bob": 2.25 + 0.5 / 60 + 1})
    assert [float(row["node_hours"]) for row in trend] == pytest.approx([sum(counted.values())])
    assert alice["node_hours"] == pytest.approx(36.375)


def test_a_period_without_jobs_is_reported(as_staff, several):
    words = words_of(as_staff.get("/users/alice/?start=2018-01-01T00:00:00Z"))

    assert "No jobs in this period" in words


def test_any_name_has_a_page(as_staff, new_job):
    name = "a/b <i>?&#%"
    new_job({"metadata_operations": 1}, owner=name)

    page = text_of(as_staff.get("/users/"))
    assert "<i>" not in page
    assert 'href="/users/a/b%20%3Ci%3E%3F&amp;%23%25/?"' in page
    assert as_staff.get("/users/a/b%20%3Ci%3E%3F&%23%25/").status_code == 200


def test_jobs_without_user_are_summed(as_staff, new_job):
    new_job({"metadata_operations": 1}, owner="")

    assert "unknown" in words_of(as_staff.get("/users/"))


@pytest.mark.parametrize(
    ("person", "users", "status"),
    [
        pytest.param("sam", {"alice", "bob"}, 200, id="staff see all"),
        pytest.param("bob", {"alice", "bob"}, 200, id="bob shares the project"),
        pytest.param("charlie", set(), 404, id="charlie sees nothing"),
    ],
)
def test_users_with_visible_jobs_are_listed(client, several, request, person, users, status):
    client.force_login(request.getfixturevalue(person))

    assert listed(client.get("/users/?format=json")).keys() == users
    for path in ("/users/alice/", "/projects/PHY12/", "/users/alice/?format=json"):
        assert client.get(path).status_code == status, path


def test_hidden_jobs_are_not_summed(client, several, new_job, bob):
    new_job({"metadata_operations": 1_000}, owner="alice", project="SECRET")
    client.force_login(bob)

    assert listed(client.get("/users/?format=json"))["alice"]["metadata_operations"] == 19


def test_many_users_have_several_pages(as_staff, new_job):
    for number in range(60):
        new_job({"metadata_operations": number}, owner=f"user{number}")

    assert "50 of 60" in words_of(as_staff.get("/users/"))
    assert "60 of 60" in words_of(as_staff.get("/users/?page=2"))
    assert len(csv_of(as_staff.get("/users/?format=csv"))) == 60


def test_the_number_of_queries_does_not_grow_with_the_jobs(
    as_staff, new_job, django_assert_num_queries
):
    new_job({"metadata_operations": 1})
    paths = {"/users/": 8, "/users/alice/": 40}
    for path, queries in paths.items():
        with django_assert_num_queries(queries):
            as_staff.get(path)
    for number in range(30):
        figures = {"metadata_operations": number}
        new_job(figures, started_at=at("12:00") - timedelta(days=number))
        new_job(figures, owner=f"user{number}")
    cache.clear()
    for path, queries in paths.items():
        with django_assert_num_queries(queries):
            as_staff.get(path)
