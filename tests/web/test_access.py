import pytest

from tests.logs import rpc

JOB_ROUTES = [
    "/jobs/{job}/",
    "/jobs/{job}/?format=json",
    "/jobs/{job}/timelines/metadata/",
    "/jobs/{job}/timelines/rpcs/?format=json",
    "/jobs/{job}/rpcs/",
    "/jobs/{job}/peers/",
]
STAFF_ROUTES = [
    "/ingest/",
    "/ingest/?format=csv",
    "/ingest/segments/{segment}/",
    "/ingest/coverage/",
    "/ingest/nids/",
    "/ingest/pending/",
]


@pytest.fixture
def paths(heavy_job):
    names = {"job": heavy_job.pk, "segment": heavy_job.records.get().segment_id}
    return lambda route: route.format_map(names)


@pytest.mark.parametrize("route", ["/jobs/", *JOB_ROUTES, *STAFF_ROUTES])
def test_a_stranger_to_the_site_is_asked_to_log_in(client, paths, route):
    answer = client.get(paths(route))

    assert answer.status_code == 302
    assert answer["Location"].startswith("/login/?next=")


@pytest.mark.parametrize("route", JOB_ROUTES)
@pytest.mark.parametrize(
    ("person", "status"),
    [
        pytest.param("alice", 200, id="alice owns it"),
        pytest.param("bob", 200, id="bob shares its project"),
        pytest.param("charlie", 404, id="charlie is told nothing, not even that it exists"),
        pytest.param("sam", 200, id="staff see all"),
    ],
)
def test_a_job_is_for_its_owner_the_project_and_staff(
    client, paths, request, route, person, status
):
    client.force_login(request.getfixturevalue(person))

    assert client.get(paths(route)).status_code == status


@pytest.mark.parametrize("route", STAFF_ROUTES)
@pytest.mark.parametrize(("person", "status"), [("alice", 403), ("sam", 200)])
def test_raw_logs_are_for_staff(client, paths, request, route, person, status):
    client.force_login(request.getfixturevalue(person))

    assert client.get(paths(route)).status_code == status


def test_the_list_has_only_jobs_that_one_may_see(client, new_job, bob):
    mine = new_job(owner="bob", project="BIO3")
    shared = new_job(owner="alice", project="PHY12")
    new_job(owner="charlie", project="CHM7")
    client.force_login(bob)

    listed = client.get("/jobs/?format=json").json()["rows"]

    assert {row["id"] for row in listed} == {mine.pk, shared.pk}


def test_facets_count_only_jobs_that_one_may_see(client, new_job, charlie):
    new_job(owner="alice", queue="secret")
    client.force_login(charlie)

    assert "secret" not in client.get("/jobs/").content.decode()


def test_a_batch_id_leads_to_its_latest_job(as_alice, new_job):
    new_job(batch_id="7", submitted_at="2016-01-01T00:00Z")
    latest = new_job(batch_id="7")

    answer = as_alice.get("/jobs/anvil/7/")

    assert answer["Location"] == f"/jobs/{latest.pk}/"


def test_a_task_of_an_array_is_found_by_its_index(as_alice, new_job):
    third = new_job(batch_id="7", array_index="3")
    new_job(batch_id="7", array_index="4")

    answer = as_alice.get("/jobs/anvil/7/?array_index=3")

    assert answer["Location"] == f"/jobs/{third.pk}/"


def test_somebody_elses_batch_id_is_not_found(client, new_job, charlie):
    new_job(batch_id="7")
    client.force_login(charlie)

    answer = client.get("/jobs/anvil/7/")

    assert answer.status_code == 404
    assert "nothing here that you can see" in answer.content.decode()


def test_users_are_told_that_ingest_is_not_for_them(as_alice):
    answer = as_alice.get("/ingest/")

    assert "This page is for staff" in answer.content.decode()


def test_logging_in_leads_to_the_jobs(client, alice):
    answer = client.post("/login/", {"username": "alice", "password": "password of alice"})

    assert answer["Location"] == "/jobs/"


def test_logging_out_leads_to_the_log_in(as_alice):
    assert as_alice.post("/logout/")["Location"] == "/login/"
    assert as_alice.get("/jobs/").status_code == 302


def test_no_page_may_run_inline_scripts(as_staff):
    policy = as_staff.get("/jobs/")["Content-Security-Policy"]

    assert "script-src 'self'" in policy
    assert "style-src 'self';" in policy


def test_a_segment_that_is_not_there_is_not_found(as_staff):
    assert as_staff.get("/ingest/segments/1/").status_code == 404


def test_staff_register_the_site_on_its_pages(as_staff, site, logs, ingest):
    ingest("rpctrace", logs("mds1.log", rpc("12:00", "7@tcp")), server="mds1")

    assert "7@tcp" in as_staff.get("/admin/jobs/nid/?registered=no").content.decode()
    assert as_staff.get("/admin/jobs/").status_code == 200
