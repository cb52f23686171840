from urllib.parse import quote

import pytest

from ioportal.activity.models import Incident
from ioportal.site.models import Server
from tests.logs import at
from tests.web.reading import words_of

ROUTES = [
    "/",
    "/jobs/",
    "/trends/",
    "/trends/opens/?format=csv",
    "/users/",
    "/users/alice/",
    "/projects/",
    "/projects/PHY12/",
    "/search/?q=alice",
    "/incidents/",
    "/incidents/{incident}/",
    "/incidents/{incident}/?format=json",
]
JOB_ROUTES = [
    "/jobs/{job}/",
    "/jobs/{job}/?format=json",
    "/jobs/{job}/timelines/metadata/",
    "/jobs/{job}/timelines/rpcs/?format=json",
    "/jobs/{job}/rpcs/",
    "/jobs/{job}/peers/",
    "/jobs/{job}/panda/",
]
POPULATION_ROUTES = [
    "/populations/",
    "/populations/?format=json",
    "/populations/further/",
    "/populations/histograms/opens/",
]
STAFF_ROUTES = [
    "/incidents/range/",
    "/incidents/range/?format=csv",
    "/ingest/",
    "/ingest/?format=csv",
    "/ingest/segments/{segment}/",
    "/ingest/coverage/",
    "/ingest/nids/",
    "/ingest/pending/",
    "/ingest/pending/?format=json",
    "/ingest/tables/",
    "/servers/",
    "/servers/mds1/",
    "/load/",
    "/styleguide/",
]


@pytest.fixture
def paths(db, heavy_job):
    kept = Incident.objects.create(
        title="Slow", server=Server.objects.get(name="mds1"), start=at("12:00"), end=at("13:00")
    )
    names = {
        "job": heavy_job.pk,
        "segment": heavy_job.records.get().segment_id,
        "incident": kept.pk,
    }
    return lambda route: route.format_map(names)


def test_a_stranger_to_the_site_is_asked_to_log_in(client, paths):
    for route in (*ROUTES, *JOB_ROUTES, *POPULATION_ROUTES, *STAFF_ROUTES):
        answer = client.get(paths(route))

        assert answer.status_code == 302, route
        assert answer["Location"].startswith("/login/?next="), route


def test_htmx_goes_to_the_log_in_and_then_to_the_page_it_wanted(client, paths):
    for route in ("/jobs/?user=alice", paths("/jobs/{job}/")):
        answer = client.get(route, headers={"HX-Request": "true"})

        assert answer.status_code == 200, route
        assert answer["HX-Redirect"] == f"/login/?next={quote(route)}", route


@pytest.mark.parametrize(
    ("person", "status"),
    [
        pytest.param("alice", 200, id="alice owns it"),
        pytest.param("bob", 200, id="bob shares its project"),
        pytest.param("charlie", 404, id="charlie is told nothing, not even that it exists"),
        pytest.param("sam", 200, id="staff see all"),
    ],
)
def test_a_job_is_for_its_owner_the_project_and_staff(client, paths, request, person, status):
    client.force_login(request.getfixturevalue(person))

    assert {client.get(paths(route)).status_code for route in JOB_ROUTES} == {status}


@pytest.mark.parametrize(("person", "status"), [("alice", 403), ("sam", 200)])
def test_raw_logs_are_for_staff(client, paths, request, person, status):
    client.force_login(request.getfixturevalue(person))

    assert {client.get(paths(route)).status_code for route in STAFF_ROUTES} == {status}


def test_users_are_told_that_ingest_is_not_for_them(as_alice):
    answer = as_alice.get("/ingest/")

    assert "This page is for staff" in words_of(answer)


def test_logging_in_leads_to_the_first_page(client, alice):
    answer = client.post("/login/", {"username": "alice", "password": "password of alice"})

    assert answer["Location"] == "/"


def test_logging_out_leads_to_the_log_in(as_alice):
    assert as_alice.post("/logout/")["Location"] == "/login/"
    assert as_alice.get("/jobs/").status_code == 302


def test_no_page_may_run_inline_scripts(as_staff):
    policy = as_staff.get("/jobs/")["Content-Security-Policy"]

    assert "script-src 'self'" in policy
    assert "style-src 'self';" in f"{policy};"  # directives come in any order
